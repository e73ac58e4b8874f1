"""From screens to frames.

    the screens of an environment's step   A, B  →  max(grey A, grey B), scaled  →  its frame
    in cells                       what does not change is not done again:

        a screen, 210×160              its frame, 84×84
        ┌────┬────┬────┬────┐           ┌──┬──┬──┬──┐
        │    │    │    │    │ 5 rows    │  │  │  │  │ 2 rows
        ├────┼────┼────┼────┤           ├──┼──┼──┼──┤
          40 columns                     21 columns

Letters: E environments, h×w a screen, H×W its frame, N cells, R×C a screen's cells, a×b a cell's pixels on a
screen, A×B on a frame.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import gcd
from typing import Literal, NamedTuple

import cv2
import numpy as np
from jaxtyping import Float32, Int64, UInt8

Screens = tuple[UInt8[np.ndarray, "h w"], UInt8[np.ndarray, "h w"]]
"""The two screens that a frame is the maximum of, in colour numbers; one seen alone stands twice."""

_INTERPOLATION = {"area": cv2.INTER_AREA, "bilinear": cv2.INTER_LINEAR}
_CHANNELS = 4
"""As many as OpenCV's area resize takes."""
_MIN_CELL_COLUMNS = 32
"""Narrower cells change less often, and cost more by their number than they save."""
_MAX_WORD_BYTES = 8
_MAX_STACKED_ROWS = 1_024
"""Of cells one below the other: enough to spread a call's cost; weights are compared up to here."""
_NOISE_SCREENS = 32


def scale_weights(length: int, size_pixels: int, interpolation: int) -> Float32[np.ndarray, "length size"]:
    """Return the weight of each pixel of a line in each pixel of the scaled one, as OpenCV computes them."""
    single_pixels = np.eye(length, dtype=np.float32)
    weights: np.ndarray = cv2.resize(single_pixels, (size_pixels, length), interpolation=interpolation)
    return weights


def count_parts(length: int, size_pixels: int, interpolation: int, *, min_length: int = 1) -> int:
    """Return into how many parts a line falls that scale alone, to the bit, to what they scale to together.

    Parts are of equal length, at least `min_length`. OpenCV's weights, which it rounds, decide: each part's
    must be the first's, and no part's pixels may weigh in another's.
    """
    weights = scale_weights(length, size_pixels, interpolation)
    for parts in range(min(gcd(length, size_pixels), max(length // min_length, 1)), 1, -1):
        if length % parts or size_pixels % parts:
            continue
        if _repeats(weights, weights[: length // parts, : size_pixels // parts], parts):
            return parts
    return 1


def count_stacked(cell_rows: int, scaled_rows: int, interpolation: int) -> int:
    """Return how many cells may lie one below the other and scale to the bit as each does alone.

    OpenCV computes where a row lies from its number and the scale. Where the scale is no exact number, 125/42
    for one, rows far down get other weights: then it is 1.
    """
    most = max(_MAX_STACKED_ROWS // cell_rows, 1)
    weights = scale_weights(most * cell_rows, most * scaled_rows, interpolation)
    alone = scale_weights(cell_rows, scaled_rows, interpolation)
    return most if _repeats(weights, alone, most) else 1


def _repeats(weights: Float32[np.ndarray, "a b"], part: Float32[np.ndarray, "c d"], parts: int) -> bool:
    return np.array_equal(weights, np.kron(np.eye(parts, dtype=np.float32), part))


class Grid(NamedTuple):
    """How a screen and its frame fall into cells."""

    rows: int
    columns: int
    cell: tuple[int, int]
    """Pixels of a cell on a screen."""
    scaled_cell: tuple[int, int]
    """Pixels of a cell on a frame."""
    stacked: int
    """How many cells may lie one below the other and scale as each does alone."""

    @classmethod
    @cache
    def of(cls, screen_shape: tuple[int, int], size_pixels: int, interpolation: int) -> Grid:
        """Return the finest grid that is worth its while and exact; the whole screen where none is."""
        whole = cls(1, 1, screen_shape, (size_pixels, size_pixels), stacked=1)
        if size_pixels > min(screen_shape):  # what is enlarged one way gets other weights both ways
            return whole
        height, width = screen_shape
        rows = count_parts(height, size_pixels, interpolation)
        columns = count_parts(width, size_pixels, interpolation, min_length=_MIN_CELL_COLUMNS)
        cell = (height // rows, width // columns)
        scaled_cell = (size_pixels // rows, size_pixels // columns)
        stacked = count_stacked(cell[0], scaled_cell[0], interpolation)
        finest = cls(rows, columns, cell, scaled_cell, stacked)
        return finest if finest.scales_noise_exactly(interpolation) else whole

    def scales_noise_exactly(self, interpolation: int) -> bool:
        """Return whether cells of screens of noise are those of the screens scaled whole.

        Bytes are scaled bilinearly by other code than the floats that tell weights, and rounded otherwise.
        """
        rows, columns = self.cell
        screens = np.random.default_rng(0).integers(
            0, 256, (_NOISE_SCREENS, self.rows * rows, self.columns * columns), np.uint8
        )
        size = (self.columns * self.scaled_cell[1], self.rows * self.scaled_cell[0])
        whole = np.array([cv2.resize(screen, size, interpolation=interpolation) for screen in screens])
        scaled = Resizer(self, interpolation).resize(self._cells(screens, self.cell))
        return np.array_equal(scaled, self._cells(whole, self.scaled_cell))

    def _cells(self, images: UInt8[np.ndarray, "n y x"], cell: tuple[int, int]) -> UInt8[np.ndarray, "N a b"]:
        rows, columns = cell
        split = images.reshape(-1, self.rows, rows, self.columns, columns)
        return split.swapaxes(2, 3).reshape(-1, rows, columns)


class Resizer:
    """Scales cells of grey screens, each by itself.

    They pass through OpenCV one below the other, and in four channels of one image: each channel gets the
    arithmetic of an image of its own, and four together take two thirds of the time of four in turn.
    """

    def __init__(self, grid: Grid, interpolation: int) -> None:
        self._grid, self._interpolation = grid, interpolation

    def resize(self, cells: UInt8[np.ndarray, "N a b"]) -> UInt8[np.ndarray, "N A B"]:
        """Return the cells, scaled."""
        scaled = np.empty((len(cells), *self._grid.scaled_cell), np.uint8)
        fours = len(cells) // _CHANNELS
        rest = fours * _CHANNELS
        parts = cells[:rest].reshape(_CHANNELS, fours, *self._grid.cell)
        outs = scaled[:rest].reshape(_CHANNELS, fours, *self._grid.scaled_cell)
        for some in self._stacks(fours):
            together = self._scale(cv2.merge([_stacked(part) for part in parts[:, some]]))
            cv2.split(together, [_stacked(out) for out in outs[:, some]])
        for some in self._stacks(len(cells) - rest):
            _stacked(scaled[rest:][some])[:] = self._scale(_stacked(cells[rest:][some]))
        return scaled

    def _stacks(self, count: int) -> Iterator[slice]:
        """Yield which of `count` cells lie one below the other."""
        most = self._grid.stacked
        return (slice(begin, begin + most) for begin in range(0, count, most))

    def _scale(self, image: UInt8[np.ndarray, "h w ..."]) -> UInt8[np.ndarray, "H W ..."]:
        rows, columns = self._grid.scaled_cell
        size = (columns, len(image) // self._grid.cell[0] * rows)
        return cv2.resize(image, size, interpolation=self._interpolation)


def _stacked(cells: UInt8[np.ndarray, "N a b"]) -> UInt8[np.ndarray, "Na b"]:
    """Return a view of cells as one image."""
    return cells.reshape(-1, cells.shape[2])


class Preprocessor:
    """Makes the frames of E environments, and of each only the cells in which a colour has changed.

    Between two steps of a game most of the screen stays: 94 % of Pong's cells do, 74 % of Enduro's.
    Invariant (`check`): the frames are those of the screens of the last `process`, whatever came before. So
    there is nothing here that a checkpoint would have to hold: any screens may follow any others.
    """

    def __init__(
        self,
        *,
        envs: int,
        screen_shape: tuple[int, int],
        size_pixels: int,
        method: Literal["area", "bilinear"],
        greys: UInt8[np.ndarray, "256"],
    ) -> None:
        self._greys = greys
        grid = Grid.of(screen_shape, size_pixels, _INTERPOLATION[method])
        self._resizer = Resizer(grid, _INTERPOLATION[method])
        self._new, self._old = (_Screens(envs, screen_shape, grid) for _ in range(2))
        self._interpolation = _INTERPOLATION[method]
        self._frames = np.zeros((envs, size_pixels, size_pixels), np.uint8)
        self._frames[:] = self._anew()
        rows, columns = grid.scaled_cell
        self._frame_cells = self._frames.reshape(envs, grid.rows, rows, grid.columns, columns)

    @property
    def screens(self) -> list[Screens]:
        """Where the screens of each environment are to be written before `process`; elsewhere after each."""
        return self._new.of_envs

    def process(self) -> UInt8[np.ndarray, "E H W"]:
        """Return the frames of the screens written; the array is reused."""
        slot, row, column = self._new.where_they_differ(self._old)
        if slot.size:
            pairs = self._new.cells[slot, :, row, :, column]
            self._frame_cells[slot, row, :, column] = self._scaled(pairs)
        self._new, self._old = self._old, self._new
        return self._frames

    def check(self) -> None:
        """Raise AssertionError unless the frames are those of the screens they were made of."""
        assert np.array_equal(self._frames, self._anew()), "a frame is not that of its screens"

    def _anew(self) -> UInt8[np.ndarray, "E H W"]:
        pooled = [np.maximum(self._greys[first], self._greys[second]) for first, second in self._old.of_envs]
        size = self._frames.shape[1:]
        return np.array([cv2.resize(screen, size, interpolation=self._interpolation) for screen in pooled])

    def _scaled(self, pairs: UInt8[np.ndarray, "N 2 a b"]) -> UInt8[np.ndarray, "N A B"]:
        greys = cv2.LUT(pairs.reshape(len(pairs), -1), self._greys).reshape(pairs.shape)
        return self._resizer.resize(np.maximum(greys[:, 0], greys[:, 1]))


class _Screens:
    """The two screens of each environment, as they are written and as they are read."""

    def __init__(self, envs: int, screen_shape: tuple[int, int], grid: Grid) -> None:
        whole = np.zeros((envs, 2, *screen_shape), np.uint8)
        self.of_envs: list[Screens] = [(first, second) for first, second in whole]
        rows, columns = grid.cell
        self.cells: UInt8[np.ndarray, "E 2 R a C b"] = whole.reshape(
            envs, 2, grid.rows, rows, grid.columns, columns
        )
        # compared in words as wide as a cell's width allows
        word = np.dtype(f"u{gcd(columns, _MAX_WORD_BYTES)}")
        self._words = whole.view(word)
        self._differ = np.zeros(self._words.shape, np.bool_)
        self._either = np.zeros((envs, *self._words.shape[2:]), np.bool_)
        cells = np.arange(envs * grid.rows * grid.columns).reshape(envs, grid.rows, 1, grid.columns, 1)
        in_words = (envs, grid.rows, rows, grid.columns, columns // word.itemsize)
        self._cell_of_word = np.broadcast_to(cells, in_words).reshape(-1)
        self._cell_differs = np.zeros(cells.size, np.bool_)
        self._places = np.indices((envs, grid.rows, grid.columns)).reshape(3, -1)

    def where_they_differ(self, other: _Screens) -> Int64[np.ndarray, "3 N"]:
        """Return environment, row and column of each cell that differs in either screen."""
        np.not_equal(self._words, other._words, out=self._differ)
        np.logical_or(self._differ[:, 0], self._differ[:, 1], out=self._either)
        self._cell_differs.fill(False)
        self._cell_differs[self._cell_of_word[np.flatnonzero(self._either)]] = True
        return self._places[:, self._cell_differs]
