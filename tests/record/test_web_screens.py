"""The screens of a game, compressed for a browser."""

import numpy as np

from atari_dqn.record.packing import unpack
from atari_dqn.record.web.screens import CHUNK_SCREENS, CompressedScreens, Palette


def test_chunks_hold_differences_of_palette_indices() -> None:
    red, blue = np.full((1, 2, 3), (200, 0, 0), np.uint8), np.full((1, 2, 3), (0, 0, 90), np.uint8)
    screens = CompressedScreens()
    for number in range(CHUNK_SCREENS + 1):
        screens.add((red if number % 2 else blue,))
    data = screens.data()
    first, second = (unpack(chunk) for chunk in data["chunks"])
    assert unpack(data["palette"]).tolist() == [[0, 0, 90], [200, 0, 0]]
    assert first[:4, 0, 0].tolist() == [0, 1, 1, 1]
    assert second.tolist() == [[[0, 0]]]


def test_of_two_screens_the_brighter_pixels_are_kept() -> None:
    white, grey, black = (255, 255, 255), (9, 9, 9), (0, 0, 0)
    earlier, later = np.array([[white, black]], np.uint8), np.array([[grey, grey]], np.uint8)
    screens = CompressedScreens()
    screens.add((np.zeros((1, 2, 3), np.uint8), earlier, later))
    data = screens.data()
    palette, chunk = unpack(data["palette"]), unpack(data["chunks"][0])
    assert palette[chunk[0]].tolist() == [[list(white), list(grey)]]


def test_a_colour_keeps_its_index() -> None:
    palette = Palette()
    first = palette.indices(np.array([[(1, 2, 3), (4, 5, 6)]], np.uint8))
    second = palette.indices(np.array([[(0, 0, 0), (4, 5, 6)]], np.uint8))
    assert (first.tolist(), second.tolist()) == ([[0, 1]], [[2, 1]])
