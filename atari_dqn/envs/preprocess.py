"""Preprocess screens to frames: convert to grey levels, take the maximum of two screens, and scale it.

    the two screens of a step   A, B  →  max(grey A, grey B), scaled  →  frame

Screens are divided into tiles that scale independently. Only tiles that changed are processed again:

        a screen, 210×160              its frame, 84×84
        ┌────┬────┬────┬────┐           ┌──┬──┬──┬──┐
        │    │    │    │    │ 5 rows    │  │  │  │  │ 2 rows
        ├────┼────┼────┼────┤           ├──┼──┼──┼──┤
          40 columns                     21 columns

Letters in shapes: E environments, h×w a screen, H×W a frame, N tiles, R×C the grid of tiles, a×b the pixels
of a tile of a screen, A×B of a frame.
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
"""The two screens, as palette indices, whose maximum is the frame; equal if a step has only one."""

_INTERPOLATION = {"area": cv2.INTER_AREA, "bilinear": cv2.INTER_LINEAR}
_CHANNELS = 4
"""The largest number of channels that OpenCV's area interpolation supports."""
_MIN_TILE_COLUMNS = 32
"""Smallest width of a tile. Narrower tiles change less often, but the overhead of more tiles is larger."""
_MAX_WORD_BYTES = 8
_MAX_STACKED_ROWS = 1_024
"""Largest height of an image of stacked tiles. It amortises a call; weights are compared up to this
height."""
_NOISE_SCREENS = 32
"""Number of random screens on which a grid is tested."""


def scale_weights(length: int, size_pixels: int, interpolation: int) -> Float32[np.ndarray, "length size"]:
    """Compute OpenCV's weight of each pixel of a line in each pixel of the scaled line."""
    single_pixels = np.eye(length, dtype=np.float32)
    weights: np.ndarray = cv2.resize(single_pixels, (size_pixels, length), interpolation=interpolation)
    return weights


def count_parts(length: int, size_pixels: int, interpolation: int, *, min_length: int = 1) -> int:
    """Compute the largest number of equal parts of a line that scale separately with bit-identical results.

    Parts have at least `min_length` pixels. The criterion is OpenCV's rounded weights: those of every part
    must equal those of the first, and no pixel of a part may have a weight in another part.
    """
    weights = scale_weights(length, size_pixels, interpolation)
    for parts in range(min(gcd(length, size_pixels), max(length // min_length, 1)), 1, -1):
        if length % parts or size_pixels % parts:
            continue
        if _repeats(weights, weights[: length // parts, : size_pixels // parts], parts):
            return parts
    return 1


def count_stacked(tile_rows: int, scaled_rows: int, interpolation: int) -> int:
    """Compute how many vertically stacked tiles scale with the same results, to the bit, as each one alone.

    OpenCV computes the position of a row from its index and the scale. If the scale is not exact in floating
    point, such as 125/42, rows far down have other weights, and the result is 1.
    """
    most = max(_MAX_STACKED_ROWS // tile_rows, 1)
    weights = scale_weights(most * tile_rows, most * scaled_rows, interpolation)
    alone = scale_weights(tile_rows, scaled_rows, interpolation)
    return most if _repeats(weights, alone, most) else 1


def _repeats(weights: Float32[np.ndarray, "a b"], part: Float32[np.ndarray, "c d"], parts: int) -> bool:
    return np.array_equal(weights, np.kron(np.eye(parts, dtype=np.float32), part))


class Grid(NamedTuple):
    """The division of a screen and its frame into tiles."""

    rows: int
    columns: int
    tile: tuple[int, int]
    """Height and width of a tile of the screen, in pixels."""
    scaled_tile: tuple[int, int]
    """Height and width of a tile of the frame, in pixels."""
    stacked: int
    """Number of vertically stacked tiles that scale as each one does alone."""

    @classmethod
    @cache
    def of(cls, screen_shape: tuple[int, int], size_pixels: int, interpolation: int) -> Grid:
        """Compute the finest grid that is exact and efficient; a single tile if there is none."""
        whole = cls(1, 1, screen_shape, (size_pixels, size_pixels), stacked=1)
        if size_pixels > min(screen_shape):  # enlarging along one axis changes OpenCV's weights along both
            return whole
        height, width = screen_shape
        rows = count_parts(height, size_pixels, interpolation)
        columns = count_parts(width, size_pixels, interpolation, min_length=_MIN_TILE_COLUMNS)
        tile = (height // rows, width // columns)
        scaled_tile = (size_pixels // rows, size_pixels // columns)
        stacked = count_stacked(tile[0], scaled_tile[0], interpolation)
        finest = cls(rows, columns, tile, scaled_tile, stacked)
        return finest if finest.scales_noise_exactly(interpolation) else whole

    def scales_noise_exactly(self, interpolation: int) -> bool:
        """Return whether scaling tiles of random screens gives the tiles of the scaled screens.

        The weights are measured on floats. For bytes, OpenCV has another bilinear implementation, which
        rounds differently.
        """
        rows, columns = self.tile
        screens = np.random.default_rng(0).integers(
            0, 256, (_NOISE_SCREENS, self.rows * rows, self.columns * columns), np.uint8
        )
        size = (self.columns * self.scaled_tile[1], self.rows * self.scaled_tile[0])
        whole = np.array([cv2.resize(screen, size, interpolation=interpolation) for screen in screens])
        scaled = Resizer(self, interpolation).resize(self._tiles(screens, self.tile))
        return np.array_equal(scaled, self._tiles(whole, self.scaled_tile))

    def _tiles(self, images: UInt8[np.ndarray, "n y x"], tile: tuple[int, int]) -> UInt8[np.ndarray, "N a b"]:
        rows, columns = tile
        split = images.reshape(-1, self.rows, rows, self.columns, columns)
        return split.swapaxes(2, 3).reshape(-1, rows, columns)


class Resizer:
    """Scales tiles of grey levels independently of each other.

    Tiles are stacked vertically and in the four channels of an image. OpenCV treats each channel like a
    separate image, and four channels take two thirds of the time of four images.
    """

    def __init__(self, grid: Grid, interpolation: int) -> None:
        self._grid, self._interpolation = grid, interpolation

    def resize(self, tiles: UInt8[np.ndarray, "N a b"]) -> UInt8[np.ndarray, "N A B"]:
        """Scale the tiles."""
        scaled = np.empty((len(tiles), *self._grid.scaled_tile), np.uint8)
        fours = len(tiles) // _CHANNELS
        rest = fours * _CHANNELS
        parts = tiles[:rest].reshape(_CHANNELS, fours, *self._grid.tile)
        outs = scaled[:rest].reshape(_CHANNELS, fours, *self._grid.scaled_tile)
        for some in self._stacks(fours):
            together = self._scale(cv2.merge([_stacked(part) for part in parts[:, some]]))
            cv2.split(together, [_stacked(out) for out in outs[:, some]])
        for some in self._stacks(len(tiles) - rest):
            _stacked(scaled[rest:][some])[:] = self._scale(_stacked(tiles[rest:][some]))
        return scaled

    def _stacks(self, count: int) -> Iterator[slice]:
        """Yield the ranges of `count` tiles that are stacked vertically."""
        most = self._grid.stacked
        return (slice(begin, begin + most) for begin in range(0, count, most))

    def _scale(self, image: UInt8[np.ndarray, "h w ..."]) -> UInt8[np.ndarray, "H W ..."]:
        rows, columns = self._grid.scaled_tile
        size = (columns, len(image) // self._grid.tile[0] * rows)
        return cv2.resize(image, size, interpolation=self._interpolation)


def _stacked(tiles: UInt8[np.ndarray, "N a b"]) -> UInt8[np.ndarray, "Na b"]:
    """Return a view of tiles as one image, in which they are stacked vertically."""
    return tiles.reshape(-1, tiles.shape[2])


class Preprocessor:
    """Computes the frames of E environments, processing only the tiles in which a pixel has changed.

    Most tiles do not change between two steps: 94 % in Pong, 74 % in Enduro.
    Invariant (`check`): the frames depend only on the screens of the last `process`, not on earlier ones.
    Therefore checkpoints contain no state of the preprocessor.
    """

    def __init__(
        self,
        *,
        envs: int,
        screen_shape: tuple[int, int],
        size_pixels: int,
        method: Literal["area", "bilinear"],
        palette: UInt8[np.ndarray, "256"],
    ) -> None:
        self._palette = palette
        grid = Grid.of(screen_shape, size_pixels, _INTERPOLATION[method])
        self._resizer = Resizer(grid, _INTERPOLATION[method])
        self._new, self._old = (_Screens(envs, screen_shape, grid) for _ in range(2))
        self._interpolation = _INTERPOLATION[method]
        self._frames = np.zeros((envs, size_pixels, size_pixels), np.uint8)
        self._frames[:] = self._process_whole()
        rows, columns = grid.scaled_tile
        self._frame_tiles = self._frames.reshape(envs, grid.rows, rows, grid.columns, columns)

    @property
    def screens(self) -> list[Screens]:
        """The arrays into which the screens of each environment are written before `process`.

        They alternate: get them again after each call of `process`.
        """
        return self._new.by_env

    def process(self) -> UInt8[np.ndarray, "E H W"]:
        """Compute the frames of the screens written, in an array that the next call overwrites."""
        slot, row, column = self._new.differing_tiles(self._old)
        if slot.size:
            pairs = self._new.tiles[slot, :, row, :, column]
            self._frame_tiles[slot, row, :, column] = self._process_tiles(pairs)
        self._new, self._old = self._old, self._new
        return self._frames

    def check(self) -> None:
        """Raise AssertionError if a frame differs from that of its whole screens."""
        assert np.array_equal(self._frames, self._process_whole()), "a frame differs from that of its screens"

    def _process_whole(self) -> UInt8[np.ndarray, "E H W"]:
        pooled = [
            np.maximum(self._palette[first], self._palette[second]) for first, second in self._old.by_env
        ]
        size = self._frames.shape[1:]
        return np.array([cv2.resize(screen, size, interpolation=self._interpolation) for screen in pooled])

    def _process_tiles(self, pairs: UInt8[np.ndarray, "N 2 a b"]) -> UInt8[np.ndarray, "N A B"]:
        greys = cv2.LUT(pairs.reshape(len(pairs), -1), self._palette).reshape(pairs.shape)
        return self._resizer.resize(np.maximum(greys[:, 0], greys[:, 1]))


class _Screens:
    """The two screens of each environment, with views by environment, by tile and by machine word."""

    def __init__(self, envs: int, screen_shape: tuple[int, int], grid: Grid) -> None:
        whole = np.zeros((envs, 2, *screen_shape), np.uint8)
        self.by_env: list[Screens] = [(first, second) for first, second in whole]
        rows, columns = grid.tile
        self.tiles: UInt8[np.ndarray, "E 2 R a C b"] = whole.reshape(
            envs, 2, grid.rows, rows, grid.columns, columns
        )
        # screens are compared in the widest words that divide the width of a tile
        word = np.dtype(f"u{gcd(columns, _MAX_WORD_BYTES)}")
        self._words = whole.view(word)
        self._differ = np.zeros(self._words.shape, np.bool_)
        self._either = np.zeros((envs, *self._words.shape[2:]), np.bool_)
        tiles = np.arange(envs * grid.rows * grid.columns).reshape(envs, grid.rows, 1, grid.columns, 1)
        in_words = (envs, grid.rows, rows, grid.columns, columns // word.itemsize)
        self._tile_of_word = np.broadcast_to(tiles, in_words).reshape(-1)
        self._tile_differs = np.zeros(tiles.size, np.bool_)
        self._indices = np.indices((envs, grid.rows, grid.columns)).reshape(3, -1)

    def differing_tiles(self, other: _Screens) -> Int64[np.ndarray, "3 N"]:
        """Return the indices (environment, row, column) of the tiles that differ in at least one screen."""
        np.not_equal(self._words, other._words, out=self._differ)
        np.logical_or(self._differ[:, 0], self._differ[:, 1], out=self._either)
        self._tile_differs.fill(False)
        self._tile_differs[self._tile_of_word[np.flatnonzero(self._either)]] = True
        return self._indices[:, self._tile_differs]
