import math
from contextlib import closing
from itertools import islice

import pytest
import torch
from tapes import drawn_at, make_buffer, play_tape, prioritized, sample_at
from test_buffer import filled
from test_prioritized import CountedCalls
from tiny import CPU, MEMORY, tiny_spec

from atari_dqn.replay.diagnostics import replay_report
from atari_dqn.replay.uniform import UniformSampler
from atari_dqn.train.build import assemble


def report(buffer, env_frames: int = 0, seed: int = 0) -> dict[str, float]:
    return replay_report(buffer, env_frames=env_frames, seed=seed)


def test_contents_are_computed_over_all_transitions() -> None:
    # A→B→C→D (life lost)→E (over); F a new episode → G → H (capped); I → J: 7 transitions and 2 last frames
    buffer = make_buffer(sampler=UniformSampler)
    play_tape(buffer, "ABCD!E|FGH/IJ", {"B": -1.0, "C": 0.0, "D": 0.0})
    found = report(buffer)
    assert found["transitions"] == 7
    assert found["terminal_share"] == pytest.approx(2 / 7)
    assert found["non_step_share"] == pytest.approx(2 / 9)
    rewards = [found[f"{sign}_reward_share"] for sign in ("negative", "zero", "positive")]
    assert rewards == pytest.approx([1 / 7, 2 / 7, 4 / 7])


def test_contents_of_sequences_are_computed_over_all_stored_steps() -> None:
    spec = tiny_spec(*MEMORY, "env.terminal_on_life_loss=false", "replay.capacity_steps=200")
    with closing(assemble(spec, CPU)) as training:
        training.begin()
        for _ in islice(training.iterations(), 300):
            pass
        found, ring = report(training.replay), training.replay.ring
    stored = torch.arange(ring.oldest, ring.newest) % ring.rows
    discount, reward = (column[stored][ring.is_step[stored]] for column in (ring.discount, ring.reward))
    assert found["terminal_share"] == pytest.approx((discount == 0).double().mean().item()) != 0
    assert found["positive_reward_share"] == pytest.approx((reward > 0).double().mean().item())


@pytest.mark.parametrize("steps", [30, 200])  # 200: the ring wrapped
def test_ages_of_uniform_samples_are_uniform(steps: int) -> None:
    found = report(filled(steps, capacity=50, batch_size=32))
    oldest = min(steps, 50)  # the newest transition is one row old
    assert found["max_age_steps"] == oldest
    assert found["mean_age_steps"] == pytest.approx((oldest + 1) / 2, rel=0.05)
    assert found["median_age_steps"] == pytest.approx((oldest + 1) / 2, rel=0.1)


def test_age_counts_the_steps_of_all_environments() -> None:
    assert report(filled(30, capacity=200, envs=4))["max_age_steps"] == 120


def test_uniform_sampling_reports_priorities_and_weights_of_one() -> None:
    found = report(filled(30, capacity=50))
    names = [f"{name}_priority" for name in ("min", "p10", "median", "mean", "p90", "max")]
    assert [found[name] for name in names] == [1.0] * 6
    assert (found["effective_sample_size"], found["effective_share"]) == (30.0, 1.0)
    assert (found["beta"], found["min_weight"], found["mean_weight"]) == (0.0, 1.0, 1.0)


def with_priorities(priorities: list[float]):
    """Create a replay with transitions of these priorities, with α = 1."""
    buffer = filled(
        len(priorities), capacity=50, stack=1,
        sampler=lambda **shape: prioritized(**shape, alpha=1.0, priority_offset=1e-300),
    )  # fmt: skip
    buffer.sampler.update_priorities(buffer.sampler.valid_indices(), torch.tensor(priorities))
    return buffer


def test_priorities_are_those_of_all_transitions() -> None:
    found = report(with_priorities([float(value) for value in range(1, 12)]))
    assert [found[f"{name}_priority"] for name in ("min", "p10", "median", "mean", "p90", "max")] == [
        1.0, 2.0, 6.0, 6.0, 10.0, 11.0
    ]  # fmt: skip


def test_effective_sample_size_is_that_of_kish() -> None:
    found = report(with_priorities([3.0, 1.0, 1.0, 1.0]))  # 6² / (9 + 3)
    assert found["effective_sample_size"] == pytest.approx(3.0)
    assert found["effective_share"] == pytest.approx(0.75)


def test_weights_use_beta_at_the_given_frames() -> None:
    buffer = with_priorities([4.0, 1.0])
    found = report(buffer, env_frames=1_000)
    # β is 1: weights 1/4 and 1, drawn with 4/5 and 1/5
    assert (found["beta"], found["min_weight"]) == (1.0, 0.25)
    assert found["mean_weight"] == pytest.approx(0.4, abs=0.01)
    assert report(buffer, env_frames=500)["beta"] == pytest.approx(0.7)


def test_ages_follow_the_priorities() -> None:
    buffer = with_priorities([1e-9] * 19 + [1.0])
    assert report(buffer)["median_age_steps"] == 1.0


def test_report_of_an_empty_replay_is_nan_except_the_count() -> None:
    buffer = make_buffer(sampler=prioritized)
    play_tape(buffer, "A")
    found = report(buffer)
    assert found.pop("transitions") == 0
    assert len(found) == 19
    assert all(math.isnan(value) for value in found.values())


@pytest.mark.parametrize("sampler", [UniformSampler, prioritized])
def test_report_changes_neither_the_samplers_stream_nor_its_priorities(sampler) -> None:
    looked_at, alone = (filled(70, capacity=40, sampler=sampler) for _ in range(2))
    for seed in range(3):
        report(looked_at, seed=seed)
        pair = [sample_at(buffer, 0) for buffer in (looked_at, alone)]
        assert torch.equal(pair[0].index, pair[1].index)
        assert torch.equal(pair[0].weight, pair[1].weight)
        for buffer, found in zip((looked_at, alone), pair, strict=True):
            buffer.update_priorities(found, found.index * 0.1)
    assert torch.equal(looked_at.sampler.priorities(), alone.sampler.priorities())


@pytest.mark.parametrize("sampler", [UniformSampler, prioritized])
def test_report_is_the_same_for_the_same_stream(sampler) -> None:
    buffer = filled(70, capacity=40, sampler=sampler)
    assert report(buffer, seed=5) == report(buffer, seed=5)
    assert report(buffer, seed=5)["mean_age_steps"] != report(buffer, seed=6)["mean_age_steps"]


@pytest.mark.parametrize("sampler", [UniformSampler, prioritized])
def test_number_of_operations_of_a_report_does_not_depend_on_sizes(sampler) -> None:
    counts = []
    for steps, batch_size in ((20, 4), (90, 64)):
        buffer = filled(steps, capacity=100, batch_size=batch_size, sampler=sampler)
        report(buffer)
        with CountedCalls() as counted:
            report(buffer)
        counts.append(sum(counted.calls.values()))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("sampler", [UniformSampler, prioritized])
def test_chosen_with_numbers_of_the_samplers_stream_equals_draw(sampler) -> None:
    buffer, other = (filled(70, capacity=40, sampler=sampler) for _ in range(2))
    unit = torch.stack(
        [torch.rand(32, dtype=torch.float64, generator=other.sampler.generator) for _ in range(3)]
    )
    buffer.sampler.prepare(500)
    indices, weights = buffer.sampler.indices_and_weights(unit)
    for row in range(3):
        drawn = drawn_at(buffer.sampler, 500)
        assert torch.equal(drawn[0], indices[row])
        assert torch.equal(drawn[1], weights[row])


def test_report_samples_4096_transitions_at_a_batch_size_of_32(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer, drawn = filled(70, capacity=40), []
    sample = buffer.sampler.indices_and_weights

    def noted(unit: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        drawn.append(unit.shape)
        return sample(unit)

    monkeypatch.setattr(buffer.sampler, "indices_and_weights", noted)
    report(buffer)
    assert drawn == [(128, 32)]
