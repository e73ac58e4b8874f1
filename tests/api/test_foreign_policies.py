"""Environments for other programs, and scores of their policies under our protocols."""

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from numpy.typing import NDArray
from tiny import CPU, TINY_CATCH, tiny_spec

import atari_dqn as dqn
from atari_dqn.api.agent import Agent
from atari_dqn.api.specs import resolved_spec
from atari_dqn.assembly.parts import build_network
from atari_dqn.envs.games import game_info, make_envs
from atari_dqn.errors import UserError
from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.spec.loader import load_spec
from atari_dqn.train.build import assemble

EXPLORING = {"evaluation.epsilon": 0.3, "evaluation.max_episode_frames": 2_000}


class Network:
    """Our own network, as a policy of another program would be."""

    def __init__(self) -> None:
        spec = load_spec(TINY_CATCH).spec
        self.network = build_network(spec, game_info(spec), CPU)

    def act(self, observation: NDArray[np.uint8], state: Any) -> tuple[int, Any]:
        import torch

        with torch.inference_mode():
            return int(self.network(torch.from_numpy(observation)[None]).argmax()), state


class Counting:
    """Selects actions in turn, and counts the steps of its game in its state."""

    def __init__(self) -> None:
        self.games: list[int] = []

    def act(self, observation: NDArray[np.uint8], state: Any) -> tuple[int, Any]:
        if state is None:
            self.games.append(0)
        self.games[-1] += 1
        return (state or 0) % 3, (state or 0) + 1


def test_a_foreign_policy_plays_the_games_of_our_agents() -> None:
    spec = load_spec(TINY_CATCH, [f"{key}={value}" for key, value in EXPLORING.items()]).spec
    policy = Network()
    ours = evaluate(policy.network, spec, episodes=6)
    foreign = dqn.evaluate(policy, TINY_CATCH, episodes=6, overrides=EXPLORING)
    assert foreign.score.returns == tuple(game.episode_return for game in ours)
    assert foreign.score.lengths_frames == tuple(game.length_frames for game in ours)


def test_a_policy_advances_in_every_step_and_begins_each_game_anew() -> None:
    policy = Counting()
    score = dqn.evaluate(policy, TINY_CATCH, episodes=4, overrides=EXPLORING).score
    assert [4 * steps for steps in policy.games] == list(score.lengths_frames)


def test_a_policy_that_writes_into_its_observation_changes_no_game() -> None:
    def reading(observation: NDArray[np.uint8]) -> int:
        return int(observation[0].any())  # the oldest of the four frames

    def overwriting(observation: NDArray[np.uint8]) -> int:
        action = reading(observation)
        observation[:] = 0
        return action

    expected, found = (dqn.evaluate(each, TINY_CATCH, episodes=2) for each in (reading, overwriting))
    assert found == expected


def test_a_function_of_the_observation_is_a_policy() -> None:
    shapes = set()

    def right(observation: NDArray[np.uint8]) -> int:
        shapes.add((observation.shape, observation.dtype.name))
        return 1

    assert dqn.evaluate(right, TINY_CATCH, episodes=2).score.episodes == 2
    assert shapes == {((4, 36, 36), "uint8")}


def test_the_protocol_is_recorded_with_the_score() -> None:
    result = dqn.evaluate(lambda _: 0, TINY_CATCH, episodes=2, protocol="modern")
    assert result.protocol.sticky_probability == 0.25
    assert result.protocol.episodes == 2


@pytest.mark.parametrize(
    "action", [-1, 3, None, "up", 1.0, True, np.bool_(True), np.array([1]), np.array([0.25, 0.5, 0.25])]
)
def test_an_action_that_there_is_not_is_refused(action: object) -> None:
    expected = re.escape(f"selected {action!r}, expected an action from 0 to 2")
    with pytest.raises(UserError, match=expected):
        dqn.evaluate(lambda _: action, TINY_CATCH, episodes=1, overrides={"evaluation.epsilon": 0.0})


@pytest.mark.parametrize("action", [np.int64(1), np.uint8(1), np.array(1)])
def test_an_integer_of_numpy_is_an_action(action: object) -> None:
    expected = dqn.evaluate(lambda _: 1, TINY_CATCH, episodes=1)
    assert dqn.evaluate(lambda _: action, TINY_CATCH, episodes=1) == expected


def test_a_policy_that_returns_only_an_action_is_refused_in_words() -> None:
    policy = SimpleNamespace(act=lambda observation, state: 1)
    with pytest.raises(UserError, match=r"returned 1, expected an action and the state for the next call"):
        dqn.evaluate(cast(Any, policy), TINY_CATCH, episodes=1)


def test_overrides_may_be_numbers_of_numpy() -> None:
    overrides = {
        "optimizer.learning_rate": np.float64(0.001),
        "seed": np.int64(2),
        "toggles.double": np.bool_(True),
    }
    spec = resolved_spec(TINY_CATCH, overrides).spec
    assert (spec.optimizer.learning_rate, spec.seed, spec.toggles.double) == (0.001, 2, True)


def test_wrong_arguments_are_refused_in_words() -> None:
    with pytest.raises(UserError, match="episodes: found 0"):
        dqn.evaluate(lambda _: 0, TINY_CATCH, episodes=0)
    with pytest.raises(UserError, match="a complete spec is used as it is"):
        dqn.make_env(load_spec(TINY_CATCH).spec, overrides={"seed": 2})


@pytest.mark.parametrize("evaluation", [False, True])
def test_an_unknown_protocol_is_refused_with_the_names(evaluation: bool) -> None:
    expected = "expected one of run, classic, modern" if evaluation else "add evaluation=True"
    with pytest.raises(UserError, match=f"protocol: found 'old', .*{expected}"):
        dqn.make_env(TINY_CATCH, evaluation=evaluation, protocol="old")


def test_a_protocol_of_the_training_environment_is_refused() -> None:
    with pytest.raises(UserError, match="protocol: found 'classic', which is for evaluations only"):
        dqn.make_env(TINY_CATCH, protocol="classic")


@pytest.mark.parametrize("evaluation", [False, True])
@pytest.mark.filterwarnings("ignore:.*")  # the checker recommends what a game has not
def test_an_environment_is_one_of_gymnasium(evaluation: bool) -> None:
    env = dqn.make_env(TINY_CATCH, evaluation=evaluation)
    assert isinstance(env, gymnasium.Env)
    check_env(env, skip_render_check=True)
    env.close()


def test_the_evaluation_environment_has_the_protocol() -> None:
    env = dqn.make_env(
        TINY_CATCH, evaluation=True, overrides={"evaluation.max_episode_frames": 20, "env.noop_max_frames": 0}
    )
    env.reset()
    ends = [env.step(np.int64(0))[2:4] for _ in range(5)]
    assert ends == [(False, False)] * 4 + [(False, True)]
    env.close()


def test_the_training_environment_has_the_games_of_training() -> None:
    env, is_over = dqn.make_env(tiny_spec()), True
    with closing(env), closing(assemble(tiny_spec(), CPU)) as training:
        expected = training.envs.reset().frame[0].copy()
        for _ in range(60):  # three games
            observation, *flags = env.reset() if is_over else env.step(np.int64(0))
            is_over = not is_over and any(flags[1:3])
            assert np.array_equal(observation[-1], expected)
            training.envs.send(np.array([0]))
            expected = training.envs.recv().frame[0].copy()


def test_games_of_evaluations_alone_begin_at_power_on(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []

    def make(**options: Any) -> Any:
        found.append(options["power_on_reset"])
        return make_envs(**options)

    monkeypatch.setattr("atari_dqn.api.environment.make_envs", make)
    for evaluation in (False, True):
        dqn.make_env(TINY_CATCH, evaluation=evaluation).close()
    assert found == [False, True]


def test_seeds_determine_the_games_of_an_environment() -> None:
    def frames(seed: int) -> bytes:
        env = dqn.make_env(TINY_CATCH)
        observations, over = [env.reset(seed=seed)[0]], False
        for _ in range(30):
            observation, _, terminated, truncated, _ = env.step(np.int64(1))
            observations.append(observation)
            if terminated or truncated:
                observations.append(env.reset()[0])
                over = True
        assert over
        env.close()
        return b"".join(observation.tobytes() for observation in observations)

    assert frames(1) == frames(1) != frames(2)


def test_an_agent_of_another_game_is_refused() -> None:
    agent = Agent(cast(Any, SimpleNamespace(spec=SimpleNamespace(game="catch"))))
    with pytest.raises(UserError, match="the policy is an agent of catch, the spec is of pong"):
        dqn.evaluate(agent, "pong_smoke", episodes=1)


def test_protocol_of_an_agent_has_the_training_of_its_own_spec(tiny_run: Callable[..., Path]) -> None:
    agent = dqn.load(tiny_run())
    other = {"env.terminal_on_life_loss": False, "learner.max_abs_reward": 5.0}
    found = dqn.evaluate(agent, TINY_CATCH, episodes=1, overrides=other).protocol
    assert (found.training_terminal_on_life_loss, found.training_max_abs_reward) == (True, 1.0)
    assert found.digest() == agent.evaluate(episodes=1).protocol.digest()


def test_protocol_of_a_foreign_policy_has_the_training_of_the_given_spec() -> None:
    other = {"env.terminal_on_life_loss": False}
    found = dqn.evaluate(lambda _: 0, TINY_CATCH, episodes=1, overrides=other).protocol
    assert found.training_terminal_on_life_loss is False


@pytest.mark.parametrize(
    ("policy", "found"),
    [(None, "found None, expected a function"), (dict, "found the class dict, expected an instance")],
)
def test_a_policy_that_is_none_is_refused(policy: Any, found: str) -> None:
    with pytest.raises(UserError, match=f"policy: {found}"):
        dqn.evaluate(policy, TINY_CATCH, episodes=1)
