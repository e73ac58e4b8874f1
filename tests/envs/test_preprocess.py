import cv2
import numpy as np
import pytest

from atari_dqn.envs.greys import NTSC_GREYS, SAME_GREYS
from atari_dqn.envs.preprocess import Grid, Preprocessor, Resizer, count_parts

FLAGS = {"area": cv2.INTER_AREA, "bilinear": cv2.INTER_LINEAR}


def preprocessor(shape=(210, 160), size=84, method="area", envs=1, greys=SAME_GREYS) -> Preprocessor:
    return Preprocessor(envs=envs, screen_shape=shape, size_pixels=size, method=method, greys=greys)


def show(to: Preprocessor, pairs: np.ndarray) -> np.ndarray:
    """Process screens u8[E, 2, h, w] and return a copy of the frames."""
    for screens, pair in zip(to.screens, pairs, strict=True):
        for screen, colours in zip(screens, pair, strict=True):
            screen[:] = colours
    frames = to.process().copy()
    to.check()
    return frames


def scaled_alone(pair: np.ndarray, greys: np.ndarray, size: int, method: str) -> np.ndarray:
    return cv2.resize(np.maximum(*greys[pair]), (size, size), interpolation=FLAGS[method])


def changing(shape: tuple[int, int], envs: int, steps: int) -> list[np.ndarray]:
    """Return screens in which, from step to step, a rectangle of one screen changes, or nothing, or all."""
    random = np.random.default_rng(0)
    pairs = random.integers(0, 256, (envs, 2, *shape), np.uint8)
    sequence = [pairs.copy()]
    for step in range(steps):
        slot, which = random.integers(envs), step % 2
        top, left = random.integers(shape[0]), random.integers(shape[1])
        pairs[slot, which, top : top + 3, left : left + 3] += 1
        sequence += [pairs.copy()] * (2 if step % 5 == 0 else 1)
    return [*sequence, random.integers(0, 256, pairs.shape, np.uint8)]


@pytest.mark.parametrize("method", ["area", "bilinear"])
@pytest.mark.parametrize(
    ("shape", "size"),
    [((210, 160), s) for s in (84, 40, 44, 96, 105, 190, 210)]
    + [((height, 160), 84) for height in (214, 230, 250)]
    + [((214, 160), 105)],
)
def test_frames_equal_whole_screens_scaled_alone(method, shape, size):
    # eight, so that many cells lie one below the other where all change
    eight = preprocessor(shape, size, method, envs=8, greys=NTSC_GREYS)
    for pairs in changing(shape, envs=8, steps=12):
        alone = [scaled_alone(pair, NTSC_GREYS, size, method) for pair in pairs]
        assert np.array_equal(show(eight, pairs), alone)


@pytest.mark.parametrize("which", [0, 1])
def test_one_pixel_of_either_screen_does_one_cell_again(which):
    one = preprocessor()
    redone = []
    scaled = one._scaled
    one._scaled = lambda pairs: redone.append(len(pairs)) or scaled(pairs)
    pair = np.zeros((1, 2, 210, 160), np.uint8)
    show(one, pair)
    pair[0, which, 209, 0] = 255
    # two arrays of screens take turns, and each has its own memory of what changed
    for _ in range(3):
        show(one, pair)
    assert redone == [1]


def test_210_by_160_pixels_fall_into_42_by_4_cells():
    assert Grid.of((210, 160), 84, cv2.INTER_AREA) == Grid(
        42, 4, cell=(5, 40), scaled_cell=(2, 21), stacked=204
    )


def test_line_that_is_enlarged_is_one_part():
    # bilinear: every pixel of the larger line is a mixture of two neighbours
    assert count_parts(40, 80, cv2.INTER_LINEAR) == 1


def test_parts_are_no_shorter_than_asked():
    assert [count_parts(160, 80, cv2.INTER_AREA, min_length=least) for least in (1, 32, 160)] == [80, 5, 1]


@pytest.mark.parametrize("num_cells", [1, 2, 3, 4, 5, 8, 9])
def test_cells_scaled_together_equal_cells_scaled_alone(num_cells):
    cells = np.random.default_rng(0).integers(0, 256, (num_cells, 5, 40), np.uint8)
    together = Resizer(Grid.of((210, 160), 84, cv2.INTER_AREA), cv2.INTER_AREA).resize(cells)
    alone = [cv2.resize(cell, (21, 2), interpolation=cv2.INTER_AREA) for cell in cells]
    assert np.array_equal(together, alone)


def test_area_is_the_mean_of_the_pixels_covered():
    screen = np.array([[0, 100, 20, 20], [100, 200, 20, 20]], np.uint8).repeat(18, 0).repeat(18, 1)
    frame = show(preprocessor(screen.shape, 36), np.array([[screen, screen]]))[0]
    # 72×36 becomes 36×36: a pixel is the mean of two side by side, and both are of one block
    assert frame[0].tolist() == [0] * 9 + [100] * 9 + [20] * 18
    assert frame[-1].tolist() == [100] * 9 + [200] * 9 + [20] * 18


def test_bilinear_and_area_differ():
    pair = np.random.default_rng(0).integers(0, 256, (1, 2, 210, 160), np.uint8)
    assert not np.array_equal(*(show(preprocessor(method=method), pair) for method in FLAGS))


def test_check_finds_a_frame_that_is_not_its_screens():
    one = preprocessor()
    one.process()[0, 0, 0] = 1
    with pytest.raises(AssertionError, match="not that of its screens"):
        one.check()
