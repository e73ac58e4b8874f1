"""The panel beside the screen: what the agent expected of each action, and what it did."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, UInt8

from atari_dqn.formatting import count
from atari_dqn.record.drawing import (
    BRIGHT,
    FAINT,
    GAIN,
    GREEDY,
    LINE,
    LOSS,
    PLAIN,
    RAISED,
    RANDOM,
    Canvas,
    Colour,
)
from atari_dqn.record.recording import RecordedGame, Recording
from atari_dqn.record.returns import BinnedReturns, binned
from atari_dqn.record.video import FRAMES_PER_SECOND

WIDTH = 416.0
"""The least it needs."""
_MARGIN = 20.0
_LEFT = _MARGIN
_ROWS_TOP = 194.0
_CHART_BOTTOM = 540.0
_STRIP_TOP, _STRIP_BOTTOM = 572.0, 586.0
_WINDOW_SECONDS = 20.0
_MOST_ACTIONS_BESIDE_LARGE_CHART = 9
_AXIS = 34.0
"""Width of the chart's numbers."""
_NOW = 72.0
"""Width of the distribution at the present step, beside the chart."""


@dataclass(frozen=True, kw_only=True)
class Now:
    """Where a game is."""

    step: int
    """The decision that the screen follows from; −1 before the first."""
    score: float
    lives: int
    frame: int
    """Emulator frames since the reset."""


class Panel:
    """Draws the panel of one game. What never changes is drawn once.

    Where a distribution was predicted, the chart is of the best action's return, and larger.
    """

    def __init__(
        self, recording: Recording, game: RecordedGame, *, place: int, size: tuple[int, int]
    ) -> None:
        self._recording, self._game = recording, game
        self._values = game.trace.values
        self._best = self._values.max(axis=1)
        best_returns = game.trace.best_returns
        self._returns = None if best_returns is None else binned(best_returns, len(self._best))
        if self._returns is None:
            self._range = float(np.quantile(self._best, 0.005)), float(np.quantile(self._best, 0.995))
        else:
            self._range = self._returns.low, self._returns.high
        # rows of many actions need the room that a larger chart would take
        is_large = (
            self._returns is not None and len(recording.action_names) <= _MOST_ACTIONS_BESIDE_LARGE_CHART
        )
        self._chart_top = 406.0 if is_large else 456.0
        self._rows_bottom = self._chart_top - 36.0
        self._gains: list[tuple[int, float]] = []
        self._score = 0.0
        self._row_height = min(32.0, (self._rows_bottom - _ROWS_TOP) / len(recording.action_names))
        self._window = math.ceil(_WINDOW_SECONDS * FRAMES_PER_SECOND / recording.env.frame_skip)
        self._preference = _preference(self._values)
        self._still = Canvas.blank(width=size[1], height=size[0])
        self._right = self._still.width - _MARGIN
        self._chart_right = self._right - (0.0 if self._returns is None else _NOW)
        self._draw_still(place)

    def picture(self, now: Now) -> UInt8[np.ndarray, "H W 3"]:
        """Return the panel at a moment; moments come in order."""
        if now.score != self._score:
            self._gains.append((now.step, now.score - self._score))
            self._score = now.score
        canvas = self._still.copy()
        self._draw_numbers(canvas, now)
        if now.step < 0:
            canvas.text(
                canvas.width / 2, (_ROWS_TOP + self._rows_bottom) / 2, "no-op start", 14, FAINT, "middle"
            )
            return canvas.pixels()
        self._draw_actions(canvas, now.step)
        self._draw_chart(canvas, now.step)
        self._draw_random(canvas, now.step)
        return canvas.pixels()

    def _draw_still(self, place: int) -> None:
        canvas, recording, source = self._still, self._recording, self._recording.source
        canvas.text(_LEFT, 28, recording.game.replace("_", " ").title(), 26, BRIGHT)
        trained = f"trained for {count(source.env_frames)} frames, seed {recording.seed}"
        canvas.text(_LEFT, 56, trained, 13, FAINT)
        games = f"game {place} of {len(recording.games)}, " if len(recording.games) > 1 else ""
        canvas.text(_LEFT, 74, f"{games}{recording.choice}", 13, FAINT)
        for y in (94.0, 160.0, self._chart_top - 24, 552.0):
            canvas.line([(_LEFT, y), (self._right, y)], LINE)
        _label(canvas, 178, "ACTION VALUES")
        _legend(canvas, self._right, 178)
        charted = "VALUE" if self._returns is None else "RETURN"
        _label(canvas, self._chart_top - 10, f"{charted}  ({_WINDOW_SECONDS:.0f} seconds)")
        _label(canvas, 562, "RANDOM ACTIONS")
        canvas.box(_LEFT, _STRIP_TOP, self._right, _STRIP_BOTTOM, RAISED, 3)
        canvas.text(_LEFT, 606, f"protocol {source.protocol_digest}", 11, FAINT)

    def _draw_numbers(self, canvas: Canvas, now: Now) -> None:
        minutes, seconds = divmod(now.frame / FRAMES_PER_SECOND, 60)
        numbers = (
            ("SCORE", f"{now.score:,.0f}", _LEFT),
            ("LIVES", f"{now.lives}" if now.lives else "-", _LEFT + 150),
            ("TIME", f"{minutes:.0f}:{seconds:04.1f}", _LEFT + 224),
            ("FRAME", f"{now.frame:,}", _LEFT + 306),
        )
        for label, number, x in numbers:
            canvas.text(x, 109, label, 12, FAINT)
            canvas.text(x, 136, number, 34 if label == "SCORE" else 20, BRIGHT)

    def _draw_actions(self, canvas: Canvas, step: int) -> None:
        values, trace = self._values[step], self._game.trace
        chosen, greedy = int(trace.actions[step]), int(values.argmax())
        accent = RANDOM if trace.explored[step] else GREEDY
        for index, name in enumerate(self._recording.action_names):
            top = _ROWS_TOP + index * self._row_height
            if index == chosen:
                canvas.box(_LEFT - 8, top, self._right + 8, top + self._row_height, RAISED, 4)
            colour = accent if index == chosen else GREEDY if index == greedy else FAINT
            self._draw_row(canvas, top, name, float(values[index]), float(values.mean()), colour)

    def _draw_row(
        self, canvas: Canvas, top: float, name: str, value: float, mean: float, colour: Colour
    ) -> None:
        """Draw one action: its name, how far it is above or below the actions' mean, its value."""
        middle, size = top + self._row_height / 2, min(14.0, self._row_height * 0.85)
        written = PLAIN if colour is FAINT else colour
        canvas.text(_LEFT, middle, name, size, written)
        canvas.text(self._right, middle, f"{value:.3f}", size, written, "right")
        zero, reach = _LEFT + 215, 85.0
        length = reach * max(-1.0, min(1.0, (value - mean) / self._preference))
        half = min(6.0, self._row_height * 0.32)
        canvas.box(zero + min(length, 0), middle - half, zero + max(length, 0), middle + half, colour)
        canvas.line([(zero, top + 2), (zero, top + self._row_height - 2)], LINE)

    def _draw_chart(self, canvas: Canvas, step: int) -> None:
        """Draw what was expected of the best action up to now, and where the score rose or fell."""
        first, top = max(0, step - self._window), self._chart_top
        low, high = self._range
        if self._returns is not None:
            self._draw_returns(canvas, self._returns, first, step)
        for at, gain in reversed(self._gains):
            if at <= step - self._window:
                break
            x = self._chart_x(at, step)
            # two wide: a video halves the resolution of colours
            canvas.line([(x, top), (x, _CHART_BOTTOM)], GAIN if gain > 0 else LOSS, 2.0)
        shown = range(first, step + 1)
        points = [(self._chart_x(at, step), self._chart_y(float(self._best[at]))) for at in shown]
        canvas.line(points * (2 if len(points) == 1 else 1), GREEDY, 1.6)
        canvas.text(self._right, top - 10, f"{self._best[step]:.3f}", 13, GREEDY, "right")
        canvas.text(_LEFT, top + 5, f"{high:.3g}", 11, FAINT)
        canvas.text(_LEFT, _CHART_BOTTOM - 5, f"{low:.3g}", 11, FAINT)

    def _draw_returns(self, canvas: Canvas, returns: BinnedReturns, first: int, step: int) -> None:
        """Draw the distributions up to now, and at the right the present one as bars."""
        top, bottom = self._chart_top, _CHART_BOTTOM
        left = self._chart_x(first, step)
        canvas.picture(left, top, self._chart_right, bottom, returns.picture[:, first : step + 1])
        share = returns.share[step]
        height = (bottom - top) / len(share)
        for bin_, part in enumerate(share.tolist()):
            if part > 0:
                y, x = bottom - (bin_ + 1) * height, self._chart_right + 8
                canvas.box(x, y, x + part * (_NOW - 8), y + height, GREEDY)
        if returns.edge_mass is not None:
            lowest, highest = returns.edge_mass[step].tolist()
            edges = f"edges {lowest:.1%}, {highest:.1%}"
            canvas.text(self._right - 64, top - 10, edges, 12, FAINT, "right")

    def _draw_random(self, canvas: Canvas, step: int) -> None:
        """Mark the steps at which the draw for exploration came up, and say how often it has."""
        explored, first = self._game.trace.explored, max(0, step - self._window)
        for at in np.flatnonzero(explored[first : step + 1]):
            x = self._chart_x(first + int(at), step)
            canvas.box(x - 1, _STRIP_TOP, x + 1, _STRIP_BOTTOM, RANDOM)
        drawn = int(explored[: step + 1].sum())
        epsilon = f"epsilon {self._recording.source.epsilon:g}"
        share = f"{drawn} of {step + 1:,}  ({drawn / (step + 1):.1%}, {epsilon})"
        canvas.text(self._right, 562, share, 12, FAINT, "right")

    def _chart_x(self, at: int, now: int) -> float:
        return self._chart_right - (now - at) / self._window * (self._chart_right - _LEFT - _AXIS)

    def _chart_y(self, value: float) -> float:
        low, high = self._range
        share = min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5
        return _CHART_BOTTOM - share * (_CHART_BOTTOM - self._chart_top)


def panel_width(height: int) -> int:
    """Return the least width, in pixels, of a panel of that height."""
    return math.ceil(WIDTH * height / Canvas.HEIGHT)


def _preference(values: Float32[np.ndarray, "T A"]) -> float:
    """Return how far an action is from the mean of its step where bars are longest."""
    distances = np.abs(values - values.mean(axis=1, keepdims=True))
    return max(float(np.quantile(distances, 0.995)), 1e-6)


def _label(canvas: Canvas, y: float, text: str) -> None:
    canvas.text(_LEFT, y, text, 12, FAINT)


def _legend(canvas: Canvas, right: float, y: float) -> None:
    for x, colour, word in ((right - 136, GREEDY, "greedy"), (right - 62, RANDOM, "random")):
        canvas.box(x, y - 4, x + 8, y + 4, colour, 2)
        canvas.text(x + 14, y, word, 12, FAINT)
