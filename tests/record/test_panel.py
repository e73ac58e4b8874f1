"""What the panel next to the screen says and marks."""

from dataclasses import replace

import numpy as np
import pytest
from tiny import tiny_spec

from atari_dqn.evaluation.traces import Trace
from atari_dqn.record.drawing import GAIN, GREEDY, LOSS, RANDOM, Canvas
from atari_dqn.record.panel import Panel, PanelState
from atari_dqn.record.recording import RecordedGame, Recording, Source, VideoOptions
from atari_dqn.run.scores import EvaluationEpisode

GAME = RecordedGame(
    episode=0,
    result=EvaluationEpisode(episode_return=1.0, length_frames=16, end_reason="game_over"),
    trace=Trace(
        actions=np.array([1, 2, 0, 1], np.uint8),
        explored=np.array([False, True, True, False]),
        values=np.array([[0, 2, 1], [0, 2, 1], [0, 2, 1], [0, 2, 1]], np.float32),
    ),
)
RECORDING = Recording(
    game="space_invaders", seed=7, stream="evaluation", env=tiny_spec().env, rom_md5="",
    action_names=("noop", "left", "right"),
    source=Source(
        checkpoint="run/checkpoints/step_000001000", step=1_000, env_frames=4_000,
        protocol="", protocol_digest="9fb95e78", epsilon=0.05,
    ),
    choice="the first 3 games", options=VideoOptions(), games=(GAME,),
)  # fmt: skip


def panel(recording: Recording = RECORDING, *, place: int = 1) -> Panel:
    return Panel(recording, GAME, place=place, size=(630, 416))


def state(step: int, *, score: float = 0.0, lives: int = 3, frame: int = 0) -> PanelState:
    return PanelState(step=step, score=score, lives=lives, frame=frame)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, int, int]]:
    """The texts that are drawn, with the colour of each."""
    found = {}
    monkeypatch.setattr(
        Canvas, "text", lambda self, x, y, text, size, colour, align="left": found.update({text: colour})
    )
    return found


@pytest.mark.parametrize(("frame", "time"), [(0, "0:00.0"), (3_597, "0:59.9"), (4_503, "1:15.0")])
def test_time_is_in_minutes_and_seconds_of_60_frames(drawn: dict, frame: int, time: str) -> None:
    panel().picture(state(0, frame=frame))
    assert {time, f"{frame:,}"} <= drawn.keys()


def test_training_is_in_frames(drawn: dict) -> None:
    panel()
    assert "trained for 4k frames, seed 7" in drawn


def test_game_of_several_has_its_number(drawn: dict) -> None:
    panel(replace(RECORDING, games=(GAME,) * 3), place=2)
    assert "game 2 of 3, the first 3 games" in drawn


def test_random_actions_are_counted_up_to_the_step(drawn: dict) -> None:
    panel().picture(state(2))
    assert "2 of 3  (66.7%, epsilon 0.05)" in drawn


@pytest.mark.parametrize(("step", "name", "colour"), [(0, "left", GREEDY), (1, "right", RANDOM)])
def test_selected_action_is_orange_if_it_is_random(drawn: dict, step: int, name: str, colour: tuple) -> None:
    panel().picture(state(step))
    assert drawn[name] == colour


@pytest.mark.parametrize(("score", "colour", "other"), [(1.0, GAIN, LOSS), (-1.0, LOSS, GAIN)])
def test_change_of_the_score_is_green_if_it_is_a_gain(score: float, colour: tuple, other: tuple) -> None:
    picture = panel().picture(state(1, score=score))
    marks = [bool((picture == each).all(axis=2).any()) for each in (colour, other)]
    assert marks == [True, False]
