import cv2
import numpy as np
import pytest

from atari_dqn.envs.preprocess import Resizer


@pytest.mark.parametrize(("method", "flag"), [("area", cv2.INTER_AREA), ("bilinear", cv2.INTER_LINEAR)])
@pytest.mark.parametrize("num_screens", [1, 2, 3, 4, 5, 8, 9])
def test_screens_resized_together_equal_screens_resized_alone(method, flag, num_screens):
    screens = list(np.random.default_rng(0).integers(0, 256, (num_screens, 210, 160), np.uint8))
    frames = np.zeros((num_screens, 84, 84), np.uint8)
    Resizer(84, method, (210, 160)).resize(screens, frames)
    alone = [cv2.resize(screen, (84, 84), interpolation=flag) for screen in screens]
    assert np.array_equal(frames, alone)


def test_area_is_the_mean_of_the_pixels_covered():
    screen = np.array([[0, 100, 20, 20], [100, 200, 20, 20]], np.uint8).repeat(18, 0).repeat(18, 1)
    frames = np.zeros((1, 36, 36), np.uint8)
    Resizer(36, "area", screen.shape).resize([screen], frames)
    # 72×36 becomes 36×36: a pixel is the mean of two side by side, and both are of one block
    assert frames[0, 0].tolist() == [0] * 9 + [100] * 9 + [20] * 18
    assert frames[0, -1].tolist() == [100] * 9 + [200] * 9 + [20] * 18


def test_bilinear_and_area_differ():
    screen = np.random.default_rng(0).integers(0, 256, (210, 160), np.uint8)
    area, bilinear = np.zeros((2, 1, 84, 84), np.uint8)
    Resizer(84, "area", screen.shape).resize([screen], area)
    Resizer(84, "bilinear", screen.shape).resize([screen], bilinear)
    assert not np.array_equal(area, bilinear)
