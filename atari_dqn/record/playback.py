"""Play back recorded games: the same random streams and actions give the same screens, frame by frame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8

from atari_dqn.clock import steps_to_frames
from atari_dqn.envs.buffers import new_batch
from atari_dqn.envs.emulator import Emulator
from atari_dqn.envs.games import make_game
from atari_dqn.envs.shard import Shard
from atari_dqn.errors import DamagedError
from atari_dqn.record.recording import RecordedGame, Recording
from atari_dqn.types import StepBatch


@dataclass(frozen=True, eq=False, kw_only=True)
class PlaybackStep:
    """The emulator frames of one agent step."""

    step: int
    """Index of the decision before them; −1 for the reset and the no-op frames."""
    screens: tuple[UInt8[np.ndarray, "H W 3"], ...]
    """Every emulator frame in RGB."""
    lives: tuple[int, ...]
    """Remaining lives at each frame."""
    score: float
    """The return of the game up to and including this step."""
    rows: StepBatch
    """The observation of the agent after the step; its arrays are reused by the next step."""
    obscured: bool
    """Whether flicker made the frame of this observation black."""


def playback(recording: Recording, game: RecordedGame) -> Iterator[PlaybackStep]:
    """Yield the steps of a game in time order; raise `DamagedError` if its result is not the recorded one."""
    shard = _environment(recording, game)
    filmed: list[tuple[UInt8[np.ndarray, "H W 3"], int]] = []

    def camera(emulator: Emulator) -> None:
        filmed.append((emulator.rgb(), emulator.lives()))

    shard.add_frame_callback(camera)
    rows = new_batch(1, shard.info.frame_shape)
    shard.reset(rows)
    score = 0.0
    for step in range(-1, len(game.trace.actions)):
        if step >= 0:
            filmed.clear()
            shard.step(game.trace.actions[step : step + 1].astype(np.int64), rows)
        score += float(rows.reward[0])
        screens, lives = zip(*filmed, strict=True)
        obscured = recording.env.flicker_probability > 0 and not rows.frame.any()
        yield PlaybackStep(step=step, screens=screens, lives=lives, score=score, rows=rows, obscured=obscured)
    _check_end(recording, game, score, rows)


def _environment(recording: Recording, game: RecordedGame) -> Shard:
    """Return an environment whose first episode is this game."""
    shard = make_game(
        game=recording.game,
        env=recording.env,
        seed=recording.seed,
        stream=recording.stream,
        episode=game.episode,
    )
    if shard.info.rom_md5 != recording.rom_md5:
        raise DamagedError(
            f"the ROM of {recording.game} here has MD5 {shard.info.rom_md5}, "
            f"the recording was made with {recording.rom_md5}; install the ale-py it was made with"
        )
    return shard


def _check_end(recording: Recording, game: RecordedGame, score: float, rows: StepBatch) -> None:
    ending = "game_over" if rows.terminated[0] else "frame_cap" if rows.truncated[0] else "no ending"
    frames = steps_to_frames(len(game.trace.actions), frame_skip=recording.env.frame_skip)
    found = (score, frames, ending)
    expected = (game.result.episode_return, game.result.length_frames, game.result.end_reason)
    if found != expected:
        raise DamagedError(
            f"game {game.episode} ended with {found}, expected {expected} as recorded: "
            f"this emulator is not the one of the recording"
        )
