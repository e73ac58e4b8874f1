from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from exported import export
from tiny import CPU, FEW_STEPS, MEMORY, run

import atari_dqn as dqn
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.evaluation.frozen_agent import load_frozen

GREEDY = ("evaluation.epsilon=0", "evaluation.max_episode_frames=2_000")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plain") / "run"
    run(path, *GREEDY)
    return path


@pytest.fixture(scope="module")
def recurrent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recurrent") / "run"
    run(path, *GREEDY, *MEMORY, *FEW_STEPS)
    return path


def observations(agent: dqn.Agent, count: int) -> np.ndarray:
    shape = (agent.spec.env.stack_frames, *agent.frozen.info.frame_shape)
    return np.random.default_rng(3).integers(0, 256, (count, *shape), dtype=np.uint8)


@pytest.mark.parametrize("kind", ["plain", "recurrent"])
def test_games_played_by_act_are_those_of_evaluate(kind: str, request: pytest.FixtureRequest) -> None:
    agent = dqn.load(request.getfixturevalue(kind))
    env = dqn.make_env(agent.spec, evaluation=True)
    returns = []
    for _ in range(4):
        observation, _ = env.reset()
        state, reward, total, over = None, 0.0, 0.0, False
        while not over:
            action, state = agent.act(observation, state, reward=reward)
            observation, reward, terminated, truncated, _ = env.step(np.int64(action))
            total, over = total + reward, terminated or truncated
        returns.append(total)
    assert tuple(returns) == agent.evaluate(episodes=4).score.returns


@pytest.mark.parametrize("kind", ["plain", "recurrent"])
def test_an_agent_is_scored_with_its_past_as_by_its_own_evaluation(
    kind: str, request: pytest.FixtureRequest
) -> None:
    agent = dqn.load(request.getfixturevalue(kind))
    with torch.no_grad():  # a memory whose last action and reward decide the next action
        for name, weight in agent.frozen.network.named_parameters():
            if name.startswith("memory.layer.weight"):
                weight.mul_(10)
    spec = replace(agent.spec, evaluation=replace(agent.spec.evaluation, epsilon=0.5))
    found = dqn.evaluate(agent, spec, episodes=6)
    games = evaluate(agent.frozen.network, spec, episodes=6)
    assert found.score.returns == tuple(game.episode_return for game in games)
    assert dqn.evaluate(agent, agent.spec, episodes=2) == agent.evaluate(episodes=2)


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"stack_frames": 2}, "observations of 4 frames of 36×36, the spec has observations of 2 frames of"),
        ({"screen_size_pixels": 40}, "observations of 4 frames of 36×36, the spec has .* of 40×40"),
    ],
)
def test_an_agent_of_other_observations_is_refused(plain: Path, changed: dict[str, int], found: str) -> None:
    agent = dqn.load(plain)
    spec = replace(agent.spec, env=replace(agent.spec.env, **changed))
    with pytest.raises(UserError, match=f"the policy is an agent with {found}"):
        dqn.evaluate(agent, spec, episodes=1)


def test_q_values_are_those_of_the_network(plain: Path) -> None:
    agent = dqn.load(plain)
    batch = observations(agent, 5)
    network = load_frozen(plain, CPU).network
    with torch.inference_mode():
        expected = network(torch.from_numpy(batch)).numpy()
    np.testing.assert_array_equal(agent.q_values(batch), expected)
    np.testing.assert_allclose(agent.q_values(batch[2]), expected[2], atol=1e-6)
    actions, state = agent.act(batch)
    assert (list(actions), state) == (list(expected.argmax(axis=1)), None)


def test_the_state_of_an_agent_with_memory_changes_its_values(recurrent: Path) -> None:
    agent = dqn.load(recurrent)
    first, second = observations(agent, 2)
    _, state = agent.act(first)
    assert not np.array_equal(agent.q_values(second, state), agent.q_values(second))
    assert not np.array_equal(agent.q_values(second, state, reward=1.0), agent.q_values(second, state))
    np.testing.assert_array_equal(
        agent.q_values(second, state, reward=9.0), agent.q_values(second, state, reward=1.0)
    )  # rewards are clipped as in training


def test_acting_with_memory_is_one_unroll_over_the_game(recurrent: Path) -> None:
    agent = dqn.load(recurrent)
    frames, rewards = observations(agent, 4), [0.0, 1.0, 0.0, -1.0]
    values, actions, state = [], [-1], None
    for frame, reward in zip(frames, rewards, strict=True):
        values.append(agent.q_values(frame, state, reward=reward))
        action, state = agent.act(frame, state, reward=reward)
        actions.append(int(action))
    network = agent.frozen.network
    with torch.inference_mode():
        expected, _ = network.unroll(
            torch.from_numpy(frames[:, 0])[None],
            torch.tensor([actions[:-1]]),
            torch.tensor([rewards]),
            torch.zeros(1, network.memory.width),
        )
    np.testing.assert_allclose(values, expected[0].numpy(), atol=1e-6)


@pytest.mark.parametrize("shape", [(2,), (2, 1)])
def test_each_of_several_games_has_its_own_reward(recurrent: Path, shape: tuple[int, ...]) -> None:
    agent = dqn.load(recurrent)
    batch = observations(agent, 2)
    found = agent.q_values(batch, reward=np.array([1.0, -1.0]).reshape(shape))
    for place, reward in enumerate((1.0, -1.0)):
        np.testing.assert_allclose(found[place], agent.q_values(batch[place], reward=reward), atol=1e-6)


@pytest.mark.parametrize("shape", [(1,), (3,), (1, 2), (2, 2)])
def test_rewards_of_another_number_of_games_are_refused(recurrent: Path, shape: tuple[int, ...]) -> None:
    agent = dqn.load(recurrent)
    with pytest.raises(UserError, match=r"reward: found shape .*, expected a number or shape \(2,\)"):
        agent.act(observations(agent, 2), reward=np.zeros(shape))


def test_a_game_of_a_batch_begins_anew_and_the_others_go_on(recurrent: Path) -> None:
    agent = dqn.load(recurrent)
    first, second = observations(agent, 6).reshape(2, 3, *observations(agent, 1).shape[1:])
    _, state = agent.act(first)
    rewards = np.array([1.0, 1.0, -1.0])
    found = agent.q_values(second, state, reward=rewards, is_first=np.array([False, True, False]))
    np.testing.assert_allclose(found[1], agent.q_values(second[1]), atol=1e-6)
    np.testing.assert_array_equal(found[::2], agent.q_values(second, state, reward=rewards)[::2])


def test_every_first_observation_has_no_past(recurrent: Path) -> None:
    agent = dqn.load(recurrent)
    batch = observations(agent, 2)
    _, state = agent.act(batch)
    found = agent.q_values(batch, state, reward=1.0, is_first=True)
    np.testing.assert_array_equal(found, agent.q_values(batch))


def test_games_that_begin_at_other_times_are_those_of_each_environment_alone(recurrent: Path) -> None:
    agent = dqn.load(recurrent)
    frames = observations(agent, 8).reshape(4, 2, *observations(agent, 1).shape[1:])
    is_first = np.array([[True, True], [False, False], [False, True], [True, False]])
    batched, states = None, [None, None]
    for batch, begins in zip(frames, is_first, strict=True):
        q_values = agent.q_values(batch, batched, is_first=begins)
        _, batched = agent.act(batch, batched, is_first=begins)
        for game in range(2):
            past = None if begins[game] else states[game]
            np.testing.assert_allclose(q_values[game], agent.q_values(batch[game], past), atol=1e-6)
            _, states[game] = agent.act(batch[game], past)


def test_numbers_of_a_state_can_be_changed(recurrent: Path) -> None:
    agent = dqn.load(recurrent)
    batch = observations(agent, 2)
    _, state = agent.act(batch)
    assert state is not None
    state.memory[1] = 0.0
    assert float(state.memory[1].abs().sum()) == 0.0


@pytest.mark.parametrize("is_first", [np.array([True]), np.zeros((2, 1), bool), 1, np.array([0.0, 1.0])])
def test_another_mark_of_first_observations_is_refused(recurrent: Path, is_first: np.ndarray) -> None:
    agent = dqn.load(recurrent)
    with pytest.raises(UserError, match=r"is_first: found .*, expected True or False, or bool of shape"):
        agent.act(observations(agent, 2), is_first=is_first)


def test_a_state_of_another_number_of_games_is_refused(recurrent: Path) -> None:
    agent = dqn.load(recurrent)
    batch = observations(agent, 3)
    _, state = agent.act(batch)
    with pytest.raises(UserError, match=r"state: found \d+ numbers for each of 3 games, expected .* of 2;"):
        agent.act(batch[:2], state)


def test_a_state_that_no_call_returned_is_refused(recurrent: Path) -> None:
    agent = dqn.load(recurrent)
    with pytest.raises(UserError, match="state: found an object of type tuple, expected what the previous"):
        agent.act(observations(agent, 1), (0, 0))


@pytest.mark.parametrize("reward", [float("nan"), [0.0, float("inf")], "high", None])
def test_a_reward_that_is_no_finite_number_is_refused(recurrent: Path, reward: object) -> None:
    agent = dqn.load(recurrent)
    with pytest.raises(UserError, match=r"reward: found .*, expected (a|finite) number"):
        agent.act(observations(agent, 2), reward=reward)


@pytest.mark.parametrize("name", ["episodes", "envs"])
@pytest.mark.parametrize("number", [0, -1])
def test_fewer_games_than_one_are_refused(plain: Path, name: str, number: int) -> None:
    with pytest.raises(UserError, match=f"{name}: found {number}, expected at least 1"):
        dqn.load(plain).evaluate(**{name: number})


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((4, 36, 36), np.float32),
        np.zeros((3, 36, 36), np.uint8),
        np.zeros((36, 36), np.uint8),
        np.zeros((2, 2, 4, 36, 36), np.uint8),
        np.zeros((0, 4, 36, 36), np.uint8),
    ],
)
def test_another_observation_is_refused_in_words(plain: Path, wrong: np.ndarray) -> None:
    with pytest.raises(
        UserError, match=r"observation: found \w+ of shape .*, expected uint8 of shape \(4, 36, 36\)"
    ):
        dqn.load(plain).q_values(wrong)


@pytest.mark.parametrize("kind", [list, torch.from_numpy])
def test_an_observation_that_is_no_array_of_numpy_is_refused(plain: Path, kind: Callable) -> None:
    agent = dqn.load(plain)
    with pytest.raises(UserError, match=r"observation: found an object of type \w+, expected a NumPy array"):
        agent.act(kind(observations(agent, 1)))


def test_a_view_of_observations_is_an_observation(plain: Path) -> None:
    agent = dqn.load(plain)
    batch = observations(agent, 3)
    mirrored, read_only = batch[:, :, ::-1], np.broadcast_to(batch[0], batch.shape)
    np.testing.assert_array_equal(agent.q_values(mirrored), agent.q_values(mirrored.copy()))
    np.testing.assert_array_equal(agent.q_values(read_only), agent.q_values(read_only.copy()))


def test_an_archive_is_loaded_as_its_run(plain: Path, tmp_path: Path) -> None:
    export(load_frozen(plain, CPU), tmp_path / "agent.dqn")
    agent, archived = dqn.load(plain), dqn.load(tmp_path / "agent.dqn")
    assert archived.scores == agent.scores
    assert archived.evaluate(episodes=5) == agent.evaluate(episodes=5)


def test_scores_have_their_protocol_and_the_return_of_each_game(plain: Path) -> None:
    final = dqn.load(plain).scores[-1]
    assert final.kind == "final"
    assert final.protocol is not None
    assert final.protocol.digest() == final.protocol_digest
    assert final.returns is not None
    assert np.mean(final.returns) == final.mean_return


def test_a_path_that_is_no_agent_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not found"):
        dqn.load(tmp_path / "absent")
    (tmp_path / "agent.dqn").write_bytes(b"PK")
    with pytest.raises(DamagedError, match=r"archive\.json"):
        dqn.load(tmp_path / "agent.dqn")
