import copy

import numpy as np
import pytest
import torch
from chance import p_value
from parts import frames, make_network, stream

from atari_dqn.agent.actor import Actor, greedy_actions
from atari_dqn.types import StepBatch


class Counting(torch.nn.Module):
    """A network whose action 2 has the highest q-value, the first of two; it notes its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[bool, bool]] = []
        self.weight = torch.nn.Parameter(torch.tensor([0.0, 1.0, 5.0, 5.0]))

    def q_values(self, stacks, rng=None, *, noise_rows):
        assert noise_rows == len(stacks)
        values = self.weight.expand(len(stacks), 4)
        self.asked.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
        assert not (values * 2).requires_grad
        return values


def policy(envs: int = 1, seed: int = 0) -> Actor:
    return Actor(
        Counting(), envs=envs, num_actions=4, stack=4, frame_shape=(1, 1),
        stream=np.random.default_rng(seed), generator=stream(),
    )  # fmt: skip


def act(of: Actor, epsilon: float | np.ndarray) -> np.ndarray:
    """Compute one ε-greedy action per environment."""
    return of.finish(of.actions.numpy() if of.begin(epsilon) else None)


def choices(of: Actor, epsilon: float | np.ndarray, times: int) -> np.ndarray:
    return np.concatenate([act(of, epsilon) for _ in range(times)])


@pytest.mark.fault("D21")
def test_without_exploration_every_action_is_the_best_one() -> None:
    assert set(choices(policy(envs=3), 0.0, 200)) == {2}


def test_first_of_equal_actions_is_taken() -> None:
    assert greedy_actions(Counting(), frames(2)).tolist() == [2, 2]


@pytest.mark.fault("D21")
def test_with_full_exploration_actions_are_uniform() -> None:
    assert p_value(np.bincount(choices(policy(envs=4), 1.0, 3_000))) > 0.001


def test_with_full_exploration_the_network_is_never_asked() -> None:
    of = policy(envs=3)
    for _ in range(50):
        act(of, 1.0)
    assert of.network.asked == []


def test_share_of_exploring_choices_is_epsilon() -> None:
    found = np.bincount(choices(policy(envs=4), 0.4, 1_000), minlength=4)
    assert p_value(found, [400, 400, 2_800, 400]) > 0.001


def test_each_environment_explores_with_its_own_epsilon() -> None:
    found = choices(policy(envs=3), np.array([1.0, 0.4, 0.0]), 1_000).reshape(1_000, 3)
    assert p_value(np.bincount(found[:, 0], minlength=4)) > 0.001
    assert p_value(np.bincount(found[:, 1], minlength=4), [100, 100, 700, 100]) > 0.001
    assert set(found[:, 2]) == {2}


def test_same_epsilon_for_each_environment_is_one_epsilon_for_all() -> None:
    one, each = policy(envs=3), policy(envs=3)
    assert choices(one, 0.3, 50).tolist() == choices(each, np.full(3, 0.3), 50).tolist()


def test_place_in_the_stream_does_not_depend_on_epsilon() -> None:
    one, other = policy(envs=3), policy(envs=3)
    choices(one, 0.0, 20)
    choices(other, 1.0, 20)
    assert one.state_dict()["stream"] == other.state_dict()["stream"]


def test_envs_explore_apart() -> None:
    of = policy(envs=8)
    mixed = [len(set(act(of, 0.5) == 2)) for _ in range(50)]
    assert mixed.count(2) > 40


@pytest.mark.fault("P04")
def test_acting_is_in_inference_mode() -> None:
    of = policy()
    choices(of, 0.0, 3)
    assert set(of.network.asked) == {(False, True)}


@pytest.mark.fault("P04")
def test_acting_leaves_gradients_on_for_learning() -> None:
    network = make_network()
    greedy_actions(network, frames(1))
    assert network(frames(1)).requires_grad


def test_loaded_policy_goes_on_as_the_saved_one_would() -> None:
    saved, loaded = policy(seed=1), policy(seed=2)
    choices(saved, 0.5, 10)
    loaded.load_state_dict(copy.deepcopy(saved.state_dict()))
    assert choices(saved, 0.5, 50).tolist() == choices(loaded, 0.5, 50).tolist()


def shown(actor: Actor, frame: int, *, first: bool = False) -> list[int]:
    """Show one environment's frame; give its stack."""
    no = np.zeros(1, dtype=bool)
    actor.observe(
        StepBatch(frame=np.full((1, 1, 1), frame, dtype=np.uint8), reward=np.zeros(1), terminated=no,
                  truncated=no, life_lost=no, first=np.array([first]))
    )  # fmt: skip
    return actor.stacks.flatten().tolist()


def test_stack_of_one_environment_is_cleared_without_the_others() -> None:
    actor, no = policy(envs=3), np.zeros(3, dtype=bool)
    for number, first in ((1, no), (2, np.array([False, True, False])), (3, no)):
        actor.observe(
            StepBatch(frame=np.full((3, 1, 1), number, dtype=np.uint8), reward=np.zeros(3), terminated=no,
                      truncated=no, life_lost=no, first=first)
        )  # fmt: skip
    assert actor.stacks.squeeze().tolist() == [[0, 1, 2, 3], [0, 0, 2, 3], [0, 1, 2, 3]]


def test_actor_stacks_the_frames_that_it_is_shown() -> None:
    actor = policy()
    found = [shown(actor, frame, first=frame in (1, 6)) for frame in range(1, 8)]
    assert found == [
        [0, 0, 0, 1], [0, 0, 1, 2], [0, 1, 2, 3], [1, 2, 3, 4], [2, 3, 4, 5], [0, 0, 0, 6], [0, 0, 6, 7],
    ]  # fmt: skip
