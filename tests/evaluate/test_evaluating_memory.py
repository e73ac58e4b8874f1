"""Evaluations and videos of agents with memory, which have a past of their own in each game."""

import pytest
import torch
from tiny import CPU, MEMORY, run_once, tiny_spec

from atari_dqn.assembly.parts import build_network
from atari_dqn.errors import UserError
from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.evaluation.frozen_agent import load_frozen
from atari_dqn.evaluation.traces import Tracer
from atari_dqn.record.checkpoint_recording import record_checkpoint
from atari_dqn.record.playback import playback
from atari_dqn.record.recording import VideoOptions
from atari_dqn.types import GameInfo

INFO = GameInfo(game="catch", action_names=("noop", "right", "left"), frame_shape=(36, 36), rom_md5="")
EPISODES = 5


def played(*overrides: str, tracer: Tracer | None = None):
    spec = tiny_spec(*MEMORY, "evaluation.epsilon=0.3", *overrides)
    return evaluate(build_network(spec, INFO, CPU), spec, episodes=EPISODES, tracer=tracer)


def test_games_are_the_same_whatever_is_played_at_the_same_time() -> None:
    one = played("system.evaluation_envs=1")
    assert played("system.evaluation_envs=3") == played("system.evaluation_envs=5") == one


def test_trace_changes_no_game() -> None:
    assert played(tracer=Tracer()) == played()


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory):
    return load_frozen(run_once(tmp_path_factory.mktemp("runs"), *MEMORY), CPU)


def recorded(agent, **options):
    return record_checkpoint(agent, options=VideoOptions(), on_progress=lambda *_: None, **options)


@pytest.mark.slow
def test_recorded_values_are_those_of_one_unroll_over_the_game(agent) -> None:
    recording = recorded(agent)
    (game,) = recording.games
    steps = [
        (torch.from_numpy(step.rows.frame.copy()), float(step.rows.reward[0]))
        for step in playback(recording, game)
    ][:-1]
    frames = torch.stack([frame for frame, _ in steps], dim=1)
    actions = torch.from_numpy(game.trace.actions[:-1].astype("int64"))
    last_action = torch.cat([torch.tensor([-1]), actions])[None]
    last_reward = torch.tensor([reward for _, reward in steps]).clamp(-1, 1)[None]
    state = torch.zeros(1, agent.network.memory.width)
    with torch.no_grad():
        q, _ = agent.network.unroll(frames, last_action, last_reward, state)
    torch.testing.assert_close(q[0], torch.from_numpy(game.trace.values.copy()), atol=1e-5, rtol=1e-5)


@pytest.mark.slow
def test_saliency_of_a_network_with_memory_is_refused(agent) -> None:
    with pytest.raises(UserError, match="not defined for a network with memory"):
        recorded(agent, saliency=True)
