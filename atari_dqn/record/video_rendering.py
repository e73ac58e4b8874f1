"""Render a recording as a video."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import cv2
import numpy as np
from jaxtyping import UInt8

from atari_dqn.record.heatmap import overlay_heatmap
from atari_dqn.record.panel import Panel, PanelState, panel_width
from atari_dqn.record.playback import PlaybackStep, playback
from atari_dqn.record.recording import RecordedGame, Recording, recording_digest
from atari_dqn.record.video import WIDTH_UNIT_PIXELS, mp4_file, require_encoder

OnProgress = Callable[[int, int], None]

_USUAL_HEIGHT, _USUAL_HEIGHT_ALONE = 630, 840
"""Three and four times the 210 lines of the console, in pixels."""
_DARK = 4
"""What the brightness of a screen is divided by where the agent got a black frame."""


def render(recording: Recording, path: Path, *, on_progress: OnProgress | None = None) -> None:
    """Render the video of a recording, with an image for every emulator frame, reproducibly to the byte.

    `on_progress` is called with the number of rendered agent steps and the total. Raise `UserError` if `path`
    exists or cannot be written, `DamagedError` if playback of a game does not give the recorded result.
    """
    require_encoder()
    # One at a time: a scene holds a few megabytes.
    scenes = (_Scene(recording, game, place) for place, game in enumerate(recording.games, start=1))
    first = next(scenes)
    total = sum(len(game.trace.actions) for game in recording.games)
    done = 0
    height, width = first.shape
    with mp4_file(path, width=width, height=height, metadata=_metadata(recording)) as write:
        for scene in chain([first], scenes):
            for step in playback(recording, scene.game):
                for picture in scene.pictures(step):
                    write(picture)
                done += step.step >= 0
                if on_progress:
                    on_progress(done, total)


class _Scene:
    """The images of one game: its scaled screens, with the panel next to them unless it is disabled."""

    def __init__(self, recording: Recording, game: RecordedGame, place: int) -> None:
        self.game = game
        rows, columns = next(playback(recording, game)).screens[0].shape[:2]
        self._scale = recording.options.scale or _usual_scale(rows, overlay=recording.options.overlay)
        height, width = _round_up(rows * self._scale, 2), columns * self._scale
        needed = width + (panel_width(height) if recording.options.overlay else 0)
        self.shape = height, _round_up(needed, WIDTH_UNIT_PIXELS)
        self._picture = np.zeros((*self.shape, 3), np.uint8)
        # The panel takes the remaining width; without it the screen is centred.
        left = 0 if recording.options.overlay else (self.shape[1] - width) // 2
        self._screen = self._picture[: rows * self._scale, left : left + width]
        self._panel_pixels = self._picture[:, width:]
        self._panel = (
            Panel(recording, game, place=place, size=self._panel_pixels.shape[:2])
            if recording.options.overlay
            else None
        )
        self._frames = 0

    def pictures(self, step: PlaybackStep) -> Iterator[UInt8[np.ndarray, "H W 3"]]:
        """Yield an image for each emulator frame; the array is reused by the next.

        Frames of a step whose observation flicker made black are dark.
        """
        if self._panel:
            state = PanelState(step=step.step, score=step.score, lives=step.lives[-1], frame=self._frames)
            self._panel_pixels[:] = self._panel.picture(state)
        for screen in step.screens:
            shown = screen // _DARK if step.obscured else screen
            self._screen[:] = self._scaled(self._with_heatmap(shown, step.step))
            yield self._picture
        self._frames += len(step.screens)

    def _with_heatmap(self, screen: UInt8[np.ndarray, "h w 3"], step: int) -> UInt8[np.ndarray, "h w 3"]:
        saliency = self.game.saliency
        return screen if saliency is None or step < 0 else overlay_heatmap(screen, saliency[step])

    def _scaled(self, screen: UInt8[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, "H W 3"]:
        """Enlarge the screen so that each pixel is a square of `scale` by `scale`."""
        scaled: np.ndarray = cv2.resize(
            screen, None, fx=self._scale, fy=self._scale, interpolation=cv2.INTER_NEAREST
        )
        return scaled


def _usual_scale(rows: int, *, overlay: bool) -> int:
    """Return the scale for a height of about 630 pixels, or 840 without the panel: 3 or 4 for 210 lines."""
    return max(1, round((_USUAL_HEIGHT if overlay else _USUAL_HEIGHT_ALONE) / rows))


def _round_up(pixels: int, unit: int) -> int:
    return -(-pixels // unit) * unit


def _metadata(recording: Recording) -> dict[str, str]:
    """Return the title for players, and a comment that identifies the recording."""
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
