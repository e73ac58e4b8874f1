"""Properties of Track B, each on a real run of the toy game."""

from typing import Any

import pytest
import torch
from tiny import begun, digest_after, ticks_of, tiny_spec

TRACK_B = (
    "track=B", "env.noop_max_frames=0", "replay.capacity_steps=150", "replay.prefill_steps=64",
    "learner.batch_size=8", "learner.target_period_updates=10", "exploration.epsilon_decay_frames=1_000",
)  # fmt: skip


def betas(*overrides: str) -> list[float]:
    """Train a complete run; return the β of the updates of every iteration."""
    with begun(tiny_spec("toggles.prioritized=true", *overrides)) as training:
        schedule, read = training.replay.sampler.beta, []

        class Noted:
            def at(self, env_frames: int) -> float:
                read.append(schedule.at(env_frames))
                return read[-1]

        training.replay.sampler.beta = Noted()
        ticks_of(training)
        assert 5 < len(read) <= training.clock.updates
        return read


def with_slow(*values: tuple[int, ...], default: int) -> list[Any]:
    """Have only the first `default` cases among the default tests."""
    return [
        case if place < default else pytest.param(*case, marks=pytest.mark.slow)
        for place, case in enumerate(values)
    ]


@pytest.mark.fault("D01")
@pytest.mark.parametrize(
    ("envs", "frames"),
    with_slow(
        (1, 600), (3, 1_201), (8, 733), (1, 1_201), (1, 733), (3, 600), (3, 733), (8, 600), (8, 1_201),
        default=3,
    ),
)  # fmt: skip
def test_beta_is_one_at_the_last_update_of_a_real_run(envs: int, frames: int) -> None:
    read = betas(f"env.num_envs={envs}", f"training.total_frames={frames}")
    assert read[-1] == 1.0
    assert 0.4 < read[0] < read[len(read) // 2] < 1.0


@pytest.mark.fault("D01")
@pytest.mark.parametrize(
    ("envs", "period", "skip"),
    with_slow((3, 5, 3), (7, 3, 1), (3, 4, 4), (5, 4, 4), (8, 1, 4), (1, 7, 3), default=0),
)
def test_beta_is_one_at_the_last_update_whatever_the_ratio_of_updates_to_iterations(
    envs: int, period: int, skip: int
) -> None:
    for steps in range(130, 140):
        read = betas(
            f"env.num_envs={envs}", f"learner.update_period_steps={period}", f"env.frame_skip={skip}",
            f"training.total_frames={steps * skip - 1}", "learner.batch_size=1",
        )  # fmt: skip
        assert read[-1] == 1.0, steps


@pytest.mark.fault("D01")
def test_beta_is_its_start_at_frame_zero_and_counts_frames() -> None:
    spec = tiny_spec("toggles.prioritized=true", "replay.beta_start=0.4", "training.total_frames=1_200")
    with begun(spec) as training:
        beta = training.replay.sampler.beta
    assert [beta.at(frames) for frames in (0, 600, 1_200, 5_000)] == pytest.approx([0.4, 0.7, 1.0, 1.0])


def test_track_b_repeats_exactly() -> None:
    assert digest_after(tiny_spec(*TRACK_B), 120) == digest_after(tiny_spec(*TRACK_B), 120)


@pytest.mark.slow
def test_track_b_gives_the_same_state_with_worker_processes() -> None:
    inline = tiny_spec(*TRACK_B, "env.num_envs=3", "training.total_frames=600")
    pooled = tiny_spec(*TRACK_B, "env.num_envs=3", "training.total_frames=600", "system.workers=2")
    assert digest_after(pooled) == digest_after(inline)


@pytest.mark.fault("D03")
def test_updates_of_nan_rewards_leave_every_priority_as_it_was() -> None:
    with begun(tiny_spec(*TRACK_B)) as training:
        ticks_of(training, 100)
        before = training.replay.sampler.priorities()
        training.replay.ring.reward.fill_(float("nan"))
        training.update(5)
        assert torch.equal(training.replay.sampler.priorities(), before)
