import cv2
import numpy as np
import pytest

from atari_dqn.envs.palette import IDENTITY_PALETTE, NTSC_PALETTE
from atari_dqn.envs.preprocess import Grid, Preprocessor, Resizer, count_parts

FLAGS = {"area": cv2.INTER_AREA, "bilinear": cv2.INTER_LINEAR}


def preprocessor(shape=(210, 160), size=84, method="area", envs=1, palette=IDENTITY_PALETTE) -> Preprocessor:
    return Preprocessor(envs=envs, screen_shape=shape, size_pixels=size, method=method, palette=palette)


def show(to: Preprocessor, pairs: np.ndarray) -> np.ndarray:
    """Process screens u8[E, 2, h, w] and return a copy of the frames."""
    for screens, pair in zip(to.screens, pairs, strict=True):
        for screen, colours in zip(screens, pair, strict=True):
            screen[:] = colours
    frames = to.process().copy()
    to.check()
    return frames


def scaled_alone(pair: np.ndarray, palette: np.ndarray, size: int, method: str) -> np.ndarray:
    return cv2.resize(np.maximum(*palette[pair]), (size, size), interpolation=FLAGS[method])


def changing(shape: tuple[int, int], envs: int, steps: int) -> list[np.ndarray]:
    """Return screens of which a small square, nothing, or everything changes from step to step."""
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
def test_frames_equal_those_of_whole_screens(method, shape, size):
    # eight environments, so that many tiles are stacked when all of them change
    eight = preprocessor(shape, size, method, envs=8, palette=NTSC_PALETTE)
    for pairs in changing(shape, envs=8, steps=12):
        alone = [scaled_alone(pair, NTSC_PALETTE, size, method) for pair in pairs]
        assert np.array_equal(show(eight, pairs), alone)


@pytest.mark.parametrize("which", [0, 1])
def test_changed_pixel_of_either_screen_processes_one_tile(which):
    one = preprocessor()
    redone = []
    process = one._process_tiles
    one._process_tiles = lambda pairs: redone.append(len(pairs)) or process(pairs)
    pair = np.zeros((1, 2, 210, 160), np.uint8)
    show(one, pair)
    pair[0, which, 209, 0] = 255
    # two arrays of screens alternate, and each is compared with the other
    for _ in range(3):
        show(one, pair)
    assert redone == [1]


def test_grid_of_210_by_160_pixels_has_42_by_4_tiles():
    assert Grid.of((210, 160), 84, cv2.INTER_AREA) == Grid(
        42, 4, tile=(5, 40), scaled_tile=(2, 21), stacked=204
    )


def test_enlarged_line_is_not_divided():
    # bilinear: every pixel of the larger line is a mixture of two neighbours
    assert count_parts(40, 80, cv2.INTER_LINEAR) == 1


def test_parts_are_at_least_as_long_as_the_minimum():
    assert [count_parts(160, 80, cv2.INTER_AREA, min_length=least) for least in (1, 32, 160)] == [80, 5, 1]


@pytest.mark.parametrize("num_tiles", [1, 2, 3, 4, 5, 8, 9])
def test_tiles_scaled_together_equal_tiles_scaled_separately(num_tiles):
    tiles = np.random.default_rng(0).integers(0, 256, (num_tiles, 5, 40), np.uint8)
    together = Resizer(Grid.of((210, 160), 84, cv2.INTER_AREA), cv2.INTER_AREA).resize(tiles)
    alone = [cv2.resize(tile, (21, 2), interpolation=cv2.INTER_AREA) for tile in tiles]
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


def test_check_finds_a_frame_that_differs_from_its_screens():
    one = preprocessor()
    one.process()[0, 0, 0] = 1
    with pytest.raises(AssertionError, match="differs from that of its screens"):
        one.check()
