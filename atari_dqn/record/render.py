"""From a recording to a video."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import cv2
import numpy as np
from jaxtyping import UInt8

from atari_dqn.record.heat import heated
from atari_dqn.record.panel import Now, Panel, panel_width
from atari_dqn.record.playback import Moment, playback
from atari_dqn.record.recording import RecordedGame, Recording, recording_digest
from atari_dqn.record.video import WIDTH_UNIT_PIXELS, mp4_file, require_encoder

OnProgress = Callable[[int, int], None]

_USUAL_HEIGHT, _USUAL_HEIGHT_ALONE = 630, 840
"""Three and four times the console's 210 lines."""


def render(recording: Recording, path: Path, *, on_progress: OnProgress | None = None) -> None:
    """Make the video of a recording, a picture for every emulator frame; the same one gives the same bytes.

    `on_progress` is told the agent steps shown and their number. `UserError` if `path` is there or cannot be
    written; `DamagedError` if a game does not come out as recorded.
    """
    require_encoder()
    scenes = [_Scene(recording, game, place) for place, game in enumerate(recording.games, start=1)]
    total = sum(len(game.trace.actions) for game in recording.games)
    done = 0
    height, width = scenes[0].shape
    with mp4_file(path, width=width, height=height, metadata=_metadata(recording)) as write:
        for scene in scenes:
            for moment in playback(recording, scene.game):
                for picture in scene.pictures(moment):
                    write(picture)
                done += moment.step >= 0
                if on_progress:
                    on_progress(done, total)


class _Scene:
    """The pictures of one game: its screens, scaled, and beside them the panel if one is wanted."""

    def __init__(self, recording: Recording, game: RecordedGame, place: int) -> None:
        self.game = game
        rows, columns = next(playback(recording, game)).screens[0].shape[:2]
        self._scale = recording.look.scale or _usual_scale(rows, overlay=recording.look.overlay)
        height, width = _up_to(rows * self._scale, 2), columns * self._scale
        needed = width + (panel_width(height) if recording.look.overlay else 0)
        self.shape = height, _up_to(needed, WIDTH_UNIT_PIXELS)
        self._picture = np.zeros((*self.shape, 3), np.uint8)
        # A panel takes what is left of the width; without one the screen is in the middle.
        left = 0 if recording.look.overlay else (self.shape[1] - width) // 2
        self._screen = self._picture[: rows * self._scale, left : left + width]
        self._beside = self._picture[:, width:]
        self._panel = (
            Panel(recording, game, place=place, size=self._beside.shape[:2])
            if recording.look.overlay
            else None
        )
        self._frames = 0

    def pictures(self, moment: Moment) -> Iterator[UInt8[np.ndarray, "H W 3"]]:
        """Yield a picture for each emulator frame; the array is reused by the next."""
        if self._panel:
            now = Now(step=moment.step, score=moment.score, lives=moment.lives[-1], frame=self._frames)
            self._beside[:] = self._panel.picture(now)
        for screen in moment.screens:
            self._screen[:] = self._scaled(self._glowing(screen, moment.step))
            yield self._picture
        self._frames += len(moment.screens)

    def _glowing(self, screen: UInt8[np.ndarray, "h w 3"], step: int) -> UInt8[np.ndarray, "h w 3"]:
        saliency = self.game.saliency
        return screen if saliency is None or step < 0 else heated(screen, saliency[step])

    def _scaled(self, screen: UInt8[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, "H W 3"]:
        """Return the screen with each pixel as a square of `scale` by `scale`."""
        scaled: np.ndarray = cv2.resize(
            screen, None, fx=self._scale, fy=self._scale, interpolation=cv2.INTER_NEAREST
        )
        return scaled


def _usual_scale(rows: int, *, overlay: bool) -> int:
    """Return 3 for the console's 210 lines, or 4 where there is no panel to make room for."""
    return max(1, round((_USUAL_HEIGHT if overlay else _USUAL_HEIGHT_ALONE) / rows))


def _up_to(pixels: int, unit: int) -> int:
    return -(-pixels // unit) * unit


def _metadata(recording: Recording) -> dict[str, str]:
    """Return what a player shows of the video, and what ties it to its recording."""
    source = recording.source
    comment = {
        "game": recording.game,
        "seed": recording.seed,
        "episodes": [game.episode for game in recording.games],
        "returns": [game.result.episode_return for game in recording.games],
        "checkpoint": source.checkpoint,
        "protocol": source.protocol,
        "protocol_digest": source.protocol_digest,
        "recording_sha256": recording_digest(recording),
    }
    title = f"{recording.game} after {source.env_frames:,} frames, seed {recording.seed}, {recording.choice}"
    return {"title": title, "comment": json.dumps(comment, ensure_ascii=False)}
