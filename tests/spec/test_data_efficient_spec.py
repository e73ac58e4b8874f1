"""The keys of self-prediction, resets and annealing: their defaults, and what is refused."""

from pathlib import Path

import pytest

from atari_dqn.spec.digest import spec_digest
from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.history import ADDED
from atari_dqn.spec.loader import load_resolved, load_spec

RUNS = Path(__file__).parents[2] / "runs"
DEVIATIONS = RUNS.parent / "docs" / "deviations.md"
EARLIER_RUN = Path(__file__).with_name("earlier_run.toml")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        # horizon, replay ratio, reset period and factors, hidden units, τ, actor, weight decay
        ("spr", (10, 2, None, None, None, 512, 1.0, "online", 0.0)),
        ("sr_spr", (10, 8, 40_000, 0.8, 0.2, 512, 0.005, "target", 0.0)),
        ("bbf_rr2", (3, 2, 40_000, 0.5, 0.5, 2_048, 0.005, "target", 0.1)),
        ("bbf_rr8", (3, 8, 40_000, 0.5, 0.5, 2_048, 0.005, "target", 0.1)),
    ],
)
def test_specs_have_the_values_of_their_sources(name: str, values: tuple[object, ...]) -> None:
    spec = load_spec(RUNS / f"{name}.toml").spec
    learner = spec.learner
    found = (
        spec.toggles.n_step, learner.updates_per_period, learner.reset_period_updates, learner.reset_keep,
        learner.reset_perturb, spec.network.hidden_units, learner.target_rate, learner.acting_network,
        spec.optimizer.weight_decay,
    )  # fmt: skip
    assert found == values
    assert (learner.self_prediction_steps, learner.self_prediction_weight) == (5, 2.0)
    assert (spec.track, spec.toggles.distribution, spec.toggles.double, spec.toggles.dueling) == (
        "C", "c51", True, True,
    )  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), [("sr_spr", 24_000), ("bbf_rr2", 36_000), ("bbf_rr8", 24_000)])
def test_last_reset_leaves_the_updates_that_the_deviations_name(name: str, expected: int) -> None:
    spec = load_spec(RUNS / f"{name}.toml").spec
    steps = spec.training.total_frames // spec.env.frame_skip - spec.replay.prefill_steps
    left = steps * spec.learner.updates_per_period - spec.learner.reset_last_updates
    assert spec.learner.reset_last_updates % spec.learner.reset_period_updates == 0
    assert left == expected
    row = next(line for line in DEVIATIONS.read_text("utf-8").splitlines() if line.startswith("| C12 |"))
    assert f"{expected:,}" in row


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["learner.acting_network=target", "learner.target_period_updates=1"], "is the online network"),
        (["toggles.resets=true", "learner.reset_last_updates=39_999"], "there would be no reset"),
        (["toggles.resets=true", "learner.reset_keep=0", "learner.reset_perturb=0"], "would all be 0"),
        (["toggles.annealing=true", "toggles.n_step=11"], "n is annealed downwards"),
        (["toggles.annealing=true", "learner.discount=0.9"], "γ is annealed upwards"),
        (["toggles.annealing=true", "learner.discount=1.0"], "stays below 1"),
        (["toggles.annealing=true", "system.cuda_graphs=true"], "repeats one n and one γ"),
        (["toggles.annealing=true", "replay.prefill_steps=11"], "must hold so many steps"),
        (["toggles.self_prediction=true", "replay.prefill_steps=6"], "must hold so many steps"),
        (["toggles.self_prediction=true", "replay.kind=sequences"], "not defined for sequences"),
        (["toggles.annealing=true", "replay.kind=sequences"], "not defined for sequences"),
        (["toggles.redo=true", "replay.kind=sequences"], "not defined for sequences"),
        (["toggles.self_prediction=true", "toggles.distribution=iqn"], "no paper combines it with quantiles"),
        (["toggles.redo=true", "network.kind=impala"], "it is defined for plain layers in a row"),
        (["toggles.redo=true", "toggles.noisy=true"], "it is defined for plain layers in a row"),
        (["toggles.redo=true", "replay.prefill_steps=255"], "the prefill must hold so many states"),
        (["learner.reset_keep=0.5"], "toggles.resets"),
        (["optimizer.weight_decay=0.1"], "optimizer.kind"),
    ],
)
def test_contradiction_is_refused_with_the_reason(write_spec, overrides: list[str], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load_spec(write_spec(), overrides)
    assert message in str(caught.value)


@pytest.mark.parametrize("distribution", ["none", "c51", "hl_gauss", "qr_dqn"])
def test_redo_takes_every_distribution_without_fractions(write_spec, distribution: str) -> None:
    overrides = ["toggles.redo=true", f"toggles.distribution={distribution}"]
    assert load_spec(write_spec(), overrides).spec.toggles.redo


def test_redo_computes_scores_from_as_many_states_as_its_authors_code(write_spec) -> None:
    spec = load_spec(write_spec(), ["toggles.redo=true", "replay.prefill_steps=256"]).spec
    assert (spec.learner.redo_states, spec.learner.batch_size) == (256, 32)


def test_earlier_run_has_the_values_that_change_nothing() -> None:
    spec = load_resolved(EARLIER_RUN, {"torch_threads": 2}).spec
    learner = spec.learner
    assert (learner.updates_per_period, learner.target_rate, learner.acting_network) == (1, 1.0, "online")
    assert not spec.toggles.self_prediction | spec.toggles.resets | spec.toggles.annealing
    assert ADDED["optimizer.weight_decay"] == 0.0


def test_keys_change_a_digest_only_where_they_are_used(write_spec) -> None:
    plain = spec_digest(load_spec(write_spec(), []).spec)
    assert spec_digest(load_spec(write_spec(), ["learner.target_rate=1.0"]).spec) == plain
    assert spec_digest(load_spec(write_spec(), ["learner.target_rate=0.5"]).spec) != plain


@pytest.mark.parametrize(
    "name", ["atari100k_der", "spr", "bbf_rr2", "btr", "btr_ln", "dopamine_rainbow", "r2d2"]
)
def test_importance_weights_are_divided_as_in_the_published_code(name: str) -> None:
    replay = load_spec(RUNS / f"{name}.toml").spec.replay
    assert replay.weight_maximum == "minibatch"
    assert replay.priority_offset is not None
    assert replay.priority_offset <= 1e-6


def test_resets_of_a_network_with_memory_are_refused() -> None:
    with pytest.raises(SpecError, match="it is not defined for networks with memory"):
        load_spec(RUNS / "r2d2_small.toml", ["toggles.resets=true"])
