"""Draw the panel next to the screen: the Q-values of the agent and the actions it selected."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, UInt8

from atari_dqn.clock import FRAMES_PER_SECOND
from atari_dqn.formatting import count
from atari_dqn.record.binned_returns import BinnedReturns, binned
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
    bins_picture,
)
from atari_dqn.record.recording import RecordedGame, Recording

WIDTH = 416.0
"""The minimum width in units of `Canvas`."""
_MARGIN = 20.0
_LEFT = _MARGIN
_ROWS_TOP = 194.0
_CHART_BOTTOM = 540.0
_STRIP_TOP, _STRIP_BOTTOM = 572.0, 586.0
_WINDOW_SECONDS = 20.0
_MAX_ACTIONS_WITH_LARGE_CHART = 9
_AXIS_WIDTH = 34.0
"""Width of the axis labels of the chart."""
_CURRENT_WIDTH = 72.0
"""Width of the value distribution at the current step, to the right of the chart."""


@dataclass(frozen=True, kw_only=True)
class PanelState:
    """The state of a game at one agent step."""

    step: int
    """The decision that led to the screen; −1 before the first."""
    score: float
    lives: int
    frame: int
    """Emulator frames since the reset."""


class Panel:
    """Draws the panel of one game on a background that is drawn once.

    With a value distribution the chart shows the distribution of the greedy action, and is larger.
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
        # a larger chart leaves too little room for many actions
        is_large = self._returns is not None and len(recording.action_names) <= _MAX_ACTIONS_WITH_LARGE_CHART
        self._chart_top = 406.0 if is_large else 456.0
        self._rows_bottom = self._chart_top - 36.0
        self._gains: list[tuple[int, float]] = []
        self._score = 0.0
        self._row_height = min(32.0, (self._rows_bottom - _ROWS_TOP) / len(recording.action_names))
        self._window = math.ceil(_WINDOW_SECONDS * FRAMES_PER_SECOND / recording.env.frame_skip)
        self._bar_scale = _bar_scale(self._values)
        self._background = Canvas.blank(width=size[1], height=size[0])
        self._right = self._background.width - _MARGIN
        self._chart_right = self._right - (0.0 if self._returns is None else _CURRENT_WIDTH)
        self._draw_background(place)

    def picture(self, state: PanelState) -> UInt8[np.ndarray, "H W 3"]:
        """Draw the panel for a state; states must be passed in time order."""
        if state.score != self._score:
            self._gains.append((state.step, state.score - self._score))
            self._score = state.score
        canvas = self._background.copy()
        self._draw_numbers(canvas, state)
        if state.step < 0:
            canvas.text(
                canvas.width / 2, (_ROWS_TOP + self._rows_bottom) / 2, "no-op start", 14, FAINT, "middle"
            )
            return canvas.pixels()
        self._draw_actions(canvas, state.step)
        self._draw_chart(canvas, state.step)
        self._draw_random(canvas, state.step)
        return canvas.pixels()

    def _draw_background(self, place: int) -> None:
        canvas, recording, source = self._background, self._recording, self._recording.source
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

    def _draw_numbers(self, canvas: Canvas, state: PanelState) -> None:
        # whole tenths, or 59.95 seconds would be shown as 60.0
        minutes, tenths = divmod(state.frame * 10 // FRAMES_PER_SECOND, 600)
        numbers = (
            ("SCORE", f"{state.score:,.0f}", _LEFT),
            ("LIVES", f"{state.lives}" if state.lives else "-", _LEFT + 150),
            ("TIME", f"{minutes}:{tenths / 10:04.1f}", _LEFT + 224),
            ("FRAME", f"{state.frame:,}", _LEFT + 306),
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
        """Draw one action: its name, a bar for its advantage over the mean, and its Q-value."""
        middle, size = top + self._row_height / 2, min(14.0, self._row_height * 0.85)
        text_colour = PLAIN if colour is FAINT else colour
        canvas.text(_LEFT, middle, name, size, text_colour)
        canvas.text(self._right, middle, f"{value:.3f}", size, text_colour, "right")
        zero, reach = _LEFT + 215, 85.0
        length = reach * max(-1.0, min(1.0, (value - mean) / self._bar_scale))
        half = min(6.0, self._row_height * 0.32)
        canvas.box(zero + min(length, 0), middle - half, zero + max(length, 0), middle + half, colour)
        canvas.line([(zero, top + 2), (zero, top + self._row_height - 2)], LINE)

    def _draw_chart(self, canvas: Canvas, step: int) -> None:
        """Draw the largest Q-value over the last seconds, and mark changes of the score."""
        first, top = max(0, step - self._window), self._chart_top
        low, high = self._range
        if self._returns is not None:
            self._draw_returns(canvas, self._returns, first, step)
        for at, gain in reversed(self._gains):
            if at <= step - self._window:
                break
            x = self._chart_x(at, step)
            # two pixels wide, because video halves the resolution of colours
            canvas.line([(x, top), (x, _CHART_BOTTOM)], GAIN if gain > 0 else LOSS, 2.0)
        shown = range(first, step + 1)
        points = [(self._chart_x(at, step), self._chart_y(float(self._best[at]))) for at in shown]
        canvas.line(points * (2 if len(points) == 1 else 1), GREEDY, 1.6)
        canvas.text(self._right, top - 10, f"{self._best[step]:.3f}", 13, GREEDY, "right")
        canvas.text(_LEFT, top + 5, f"{high:.3g}", 11, FAINT)
        canvas.text(_LEFT, _CHART_BOTTOM - 5, f"{low:.3g}", 11, FAINT)

    def _draw_returns(self, canvas: Canvas, returns: BinnedReturns, first: int, step: int) -> None:
        """Draw the value distributions over the last seconds, and the current one as bars on the right."""
        top, bottom = self._chart_top, _CHART_BOTTOM
        left = self._chart_x(first, step)
        canvas.picture(left, top, self._chart_right, bottom, bins_picture(returns.share[first : step + 1]))
        share = returns.share[step]
        height = (bottom - top) / len(share)
        for bin_, part in enumerate(share.tolist()):
            if part > 0:
                y, x = bottom - (bin_ + 1) * height, self._chart_right + 8
                canvas.box(x, y, x + part * (_CURRENT_WIDTH - 8), y + height, GREEDY)
        if returns.edge_mass is not None:
            lowest, highest = returns.edge_mass[step].tolist()
            edges = f"edges {lowest:.1%}, {highest:.1%}"
            canvas.text(self._right - 64, top - 10, edges, 12, FAINT, "right")

    def _draw_random(self, canvas: Canvas, step: int) -> None:
        """Mark the steps with random actions, and draw how many there were so far."""
        explored, first = self._game.trace.explored, max(0, step - self._window)
        for at in np.flatnonzero(explored[first : step + 1]):
            x = self._chart_x(first + int(at), step)
            canvas.box(x - 1, _STRIP_TOP, x + 1, _STRIP_BOTTOM, RANDOM)
        drawn = int(explored[: step + 1].sum())
        epsilon = f"epsilon {self._recording.source.epsilon:g}"
        share = f"{drawn} of {step + 1:,}  ({drawn / (step + 1):.1%}, {epsilon})"
        canvas.text(self._right, 562, share, 12, FAINT, "right")

    def _chart_x(self, at: int, now: int) -> float:
        return self._chart_right - (now - at) / self._window * (self._chart_right - _LEFT - _AXIS_WIDTH)

    def _chart_y(self, value: float) -> float:
        low, high = self._range
        share = min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5
        return _CHART_BOTTOM - share * (_CHART_BOTTOM - self._chart_top)


def panel_width(height: int) -> int:
    """Return the minimum width of a panel in pixels. `height`: in pixels."""
    return math.ceil(WIDTH * height / Canvas.HEIGHT)


def _bar_scale(values: Float32[np.ndarray, "T A"]) -> float:
    """Return the distance between a Q-value and the mean of its step at which bars have full length."""
    distances = np.abs(values - values.mean(axis=1, keepdims=True))
    return max(float(np.quantile(distances, 0.995)), 1e-6)


def _label(canvas: Canvas, y: float, text: str) -> None:
    canvas.text(_LEFT, y, text, 12, FAINT)


def _legend(canvas: Canvas, right: float, y: float) -> None:
    for x, colour, word in ((right - 136, GREEDY, "greedy"), (right - 62, RANDOM, "random")):
        canvas.box(x, y - 4, x + 8, y + 4, colour, 2)
        canvas.text(x + 14, y, word, 12, FAINT)
