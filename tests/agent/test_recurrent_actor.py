"""The past of an actor with memory: zero at an episode's first frame, and continued everywhere else."""

import numpy as np
import pytest
import torch
from parts import stream
from sequences import ACTIONS, SIDE, make_recurrent_network

from atari_dqn.agent.recurrent_actor import RecurrentActor
from atari_dqn.types import StepBatch

ENVS = 2


def make_actor() -> RecurrentActor:
    return RecurrentActor(
        make_recurrent_network(),
        envs=ENVS,
        num_actions=ACTIONS,
        stack=1,
        frame_shape=(SIDE, SIDE),
        stream=np.random.default_rng(0),
        generator=stream(),
        max_abs_reward=1.0,
    )


def make_step(frame: int, **flags) -> StepBatch:
    columns = {
        name: np.array(flags.get(name, [0] * ENVS), dtype=kind)
        for name, kind in (
            ("reward", np.float64), ("terminated", bool), ("truncated", bool), ("life_lost", bool),
            ("first", bool),
        )
    }  # fmt: skip
    frames = np.random.default_rng(frame).integers(0, 256, (ENVS, SIDE, SIDE)).astype(np.uint8)
    return StepBatch(frame=frames, **columns)


def act(actor: RecurrentActor, epsilon: float = 0.0) -> np.ndarray:
    assert actor.begin(epsilon)
    return actor.finish(actor.actions.numpy())


def played(*steps: StepBatch, epsilon: float = 0.0) -> RecurrentActor:
    """Return an actor after an episode's first frames, some steps of it, and these."""
    actor = make_actor()
    for step in (make_step(0, first=[1, 1]), make_step(1), make_step(2), *steps):
        actor.observe(step)
        if step is not steps[-1]:
            act(actor, epsilon)
    return actor


def past(actor: RecurrentActor, env: int = 0) -> tuple[bool, int, float]:
    """Return whether the state is zero, the last action and the last reward of an environment."""
    found = actor.past
    return not found.state[env].any(), int(found.last_action[env]), float(found.last_reward[env])


NONE = (True, -1, 0.0)


def test_past_is_nothing_at_the_first_frame_of_a_run() -> None:
    actor = make_actor()
    actor.observe(make_step(0, first=[1, 1]))
    assert past(actor, 0) == past(actor, 1) == NONE


def test_past_has_the_state_the_action_and_the_clipped_reward() -> None:
    actor = played(make_step(3), make_step(4, reward=[0.5, -7.0]))
    assert [past(actor, env)[0] for env in range(ENVS)] == [False, False]
    assert [past(actor, env)[1] for env in range(ENVS)] == actor._latest.tolist()
    assert [past(actor, env)[2] for env in range(ENVS)] == [0.5, -1.0]


@pytest.mark.parametrize("flag", ["terminated", "truncated"])
def test_past_continues_on_the_last_frame_and_is_nothing_on_the_first_one_after(flag: str) -> None:
    last = make_step(3, **{flag: [1, 0]}, reward=[1, 0])
    is_zero, action, reward = past(played(last))
    assert (is_zero, action >= 0, reward) == (False, True, 1.0)
    after = played(last, make_step(4, first=[1, 0]))
    assert past(after, 0) == NONE
    assert not past(after, 1)[0]


def test_past_continues_when_a_life_is_lost() -> None:
    lost, plain = (played(make_step(3, life_lost=[flag, 0]), make_step(4)) for flag in (1, 0))
    assert torch.equal(lost.past.state, plain.past.state)


def test_state_advances_while_all_environments_explore() -> None:
    actor = played(make_step(3), epsilon=1.0)
    assert [past(actor, env)[0] for env in range(ENVS)] == [False, False]


def test_state_is_that_of_one_unroll_from_the_episodes_start() -> None:
    steps = [make_step(number, first=[number == 0] * ENVS, reward=[0.25, 0]) for number in range(5)]
    actor, actions, rewards = make_actor(), [np.full(ENVS, -1)], [np.zeros(ENVS)]
    for step in steps:
        actor.observe(step)
        actions.append(act(actor).copy())
        rewards.append(step.reward)
    frames = torch.from_numpy(np.stack([step.frame for step in steps], axis=1))
    with torch.no_grad():
        _, state = actor.network.unroll(
            frames,
            torch.from_numpy(np.stack(actions[:-1], axis=1)),
            torch.from_numpy(np.stack([0 * rewards[0], *rewards[2:]], axis=1)).float(),
            torch.zeros(ENVS, actor.network.memory.width),
        )
    actor.observe(make_step(5))
    torch.testing.assert_close(actor.past.state, state, atol=1e-5, rtol=1e-5)


@pytest.mark.fault("W03")
def test_loaded_actor_acts_as_the_saved_one() -> None:
    actor, other = played(make_step(3), make_step(4, reward=[1, 0])), make_actor()
    other.load_state_dict(actor.state_dict())
    other.stacks.copy_(actor.stacks)
    assert act(other, 0.3).tolist() == act(actor, 0.3).tolist()
    assert torch.equal(other.past._next_state, actor.past._next_state)
