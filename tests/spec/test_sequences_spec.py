"""The keys of agents with memory: their defaults, and the combinations that are refused."""

import pytest

from atari_dqn.spec.digest import spec_digest
from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.loader import load_spec

MEMORY = ["network.memory=lstm"]
TRANSITIONS = ["network.memory=none", "replay.kind=transitions"]


def test_memory_brings_the_values_of_its_paper(write_spec) -> None:
    spec = load_spec(write_spec(), MEMORY).spec
    assert spec.replay.kind == "sequences"
    replay = spec.replay
    assert (replay.sequence_steps, replay.burn_in_steps, replay.sequence_period_steps) == (80, 40, 40)
    assert (replay.stored_state, replay.priority_mix) == (True, None)
    assert (spec.network.memory_units, spec.network.memory_inputs) == (512, True)
    assert (spec.learner.sequence_reduction, spec.learner.value_rescaling) == ("sum", True)


@pytest.mark.parametrize(
    ("track", "overrides", "expected"),
    [("A", [], True), ("A", MEMORY, False), ("D", [], False), ("D", TRANSITIONS, True)],
)
def test_cuda_graphs_are_off_for_sequences_alone(
    write_spec, track: str, overrides: list[str], expected: bool
):
    spec = load_spec(write_spec(), [f"track={track}", *overrides]).spec
    assert spec.system.cuda_graphs is expected


def test_network_without_memory_learns_from_sequences_without_a_state(write_spec) -> None:
    overrides = ["replay.kind=sequences", "replay.burn_in_steps=0", "toggles.prioritized=true"]
    spec = load_spec(write_spec(), overrides).spec
    assert (spec.replay.stored_state, spec.replay.priority_mix) == (None, 0.9)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["replay.kind=transitions"], 'found "lstm" with replay.kind = "transitions"'),
        (["toggles.distribution=iqn"], 'found "iqn" with replay.kind = "sequences"; it is not defined'),
        (["toggles.distribution=c51"], "it is not defined for sequences"),
        (["toggles.munchausen=true"], "it is not defined for sequences: set the first to false"),
        (["toggles.noisy=true", "exploration.epsilon_start=0"], "it is not defined for sequences"),
        (["toggles.random_shifts=true"], "it is not defined for sequences"),
        (["learner.compile=true"], "it is not defined for sequences"),
        (["system.cuda_graphs=true"], "it is not defined for sequences: set the first to false"),
        (["replay.burn_in_steps=41"], "need a whole burn-in: lower the first"),
        (["replay.sequence_steps=39"], "must hold all of its steps: lower the first"),
        (["toggles.n_step=81"], "n-step returns must fit in a sequence"),
        (["replay.prefill_steps=81"], "the prefill must hold a sequence of each environment"),
        (["replay.capacity_steps=81", "replay.prefill_steps=81"], "share of the replay must hold a sequence"),
        (["network.hidden_units=0", "toggles.dueling=true"], "may have no hidden layer"),
    ],
)
def test_contradiction_is_refused_with_the_reason(write_spec, overrides: list[str], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_spec(write_spec(), [*MEMORY, *overrides])
    assert message in str(caught.value)


def test_network_without_memory_needs_a_hidden_layer(write_spec) -> None:
    with pytest.raises(SpecError, match="only a network with memory"):
        load_spec(write_spec(), ["network.hidden_units=0"])


@pytest.mark.parametrize("key", ["network.memory_units=8", "replay.stored_state=true"])
def test_key_of_a_memory_belongs_to_one(write_spec, key: str) -> None:
    with pytest.raises(SpecError, match=r'belongs to .* other than "none"|belongs to replay\.kind'):
        load_spec(write_spec(), [key])


def test_unused_key_of_a_later_version_is_not_in_the_digest(write_spec) -> None:
    plain = spec_digest(load_spec(write_spec()).spec)
    assert plain == spec_digest(load_spec(write_spec(), ["network.memory=none"]).spec)
    assert plain != spec_digest(load_spec(write_spec(), MEMORY).spec)
