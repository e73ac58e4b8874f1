"""The first priority of a sample is the error that the loss computes with the weights that acted."""

import numpy as np
import pytest
import torch
from lockstep import AGENTS, begun, lockstep, play

ERRORS = (
    "replay.alpha=1.0",
    "replay.priority_offset=1e-6",
    "toggles.double=false",
    "replay.prefill_steps=120",
)


@pytest.mark.fault("M10")
@pytest.mark.parametrize("life", ["true", "false"])
@pytest.mark.parametrize("agent", ["apex", "r2d2"])
def test_first_priorities_are_the_errors_of_the_loss(agent: str, life: str) -> None:
    overrides = (*AGENTS[agent], *ERRORS, f"env.terminal_on_life_loss={life}", "replay.capacity_steps=240")
    with begun(lockstep(2, *overrides)) as training:
        play(training, 9)
        assert training.learner.updates == 0
        indices = training.replay.sampler.valid_indices()
        assert len(indices) >= 15
        batch = training.replay.minibatch(indices, torch.ones(len(indices)))
        learner = training.learner
        expected = learner.loss(batch, learner.online, learner.online, learner.generator).priorities
        found = training.replay.sampler.priorities().float() - 1e-6
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("toggle", ["distribution=c51", "distribution=qr_dqn", "munchausen=true"])
def test_first_priorities_on_another_scale_than_values_are_the_largest_so_far(toggle: str) -> None:
    overrides = (*AGENTS["apex"], *ERRORS, "toggles.dueling=false", f"toggles.{toggle}")
    with begun(lockstep(2, *overrides, "replay.capacity_steps=240")) as training:
        play(training, 4)
        sampler = training.replay.sampler
        before = sampler.valid_indices()
        sampler.update_priorities(before[:1], torch.tensor([7.0]))
        play(training, 4)
        added = sampler.tree.get(sampler.valid_indices())[~torch.isin(sampler.valid_indices(), before)]
    assert len(added) >= 5
    assert added.tolist() == pytest.approx([7.0] * len(added))


def test_uniform_replay_computes_no_priorities() -> None:
    with begun(lockstep(2)) as training:
        sent = [iteration.fragment.priority for iteration, _ in play(training, 4)]
    assert [priority.shape for priority in sent] == [(7, 2), (7, 2), (6, 2), (6, 2)]
    assert all(np.isnan(priority).all() for priority in sent)
