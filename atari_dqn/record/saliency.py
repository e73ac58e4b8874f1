"""Compute saliency maps after Greydanus et al. (2018), "Visualizing and Understanding Atari Agents".

The saliency of a location is the change of the Q-values if the screen is blurred there. Legend: P = G × G
locations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import cv2
import numpy as np
import torch
from jaxtyping import Float32, UInt8

from atari_dqn.agent.network import QNetwork
from atari_dqn.envs.stacking import FrameStacker
from atari_dqn.record.playback import playback
from atari_dqn.record.recording import RecordedGame, Recording

SPACING_PIXELS = 5
"""Distance between locations, as in the paper."""
_BLUR_SIGMA_PIXELS = 3.0
_MASK_SIGMA_PIXELS = 5.0
_BRIGHTEST_QUANTILE = 0.999
"""The saliency of a game is divided by this quantile, one scale for all steps."""


def saliency_of(
    recording: Recording,
    game: RecordedGame,
    network: QNetwork,
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> UInt8[np.ndarray, "T G G"]:
    """Compute the saliency of every decision of a game, from 0 to 255 on one scale."""
    steps = len(game.trace.actions)
    maps = []
    for stack in _stacks(recording, game):
        maps.append(_saliency(network, stack))
        if on_progress:
            on_progress(len(maps), steps)
    # The square root, because ½‖ΔQ‖² itself would show little but the most salient location.
    strength = np.sqrt(np.stack(maps))
    brightest = max(float(np.quantile(strength, _BRIGHTEST_QUANTILE)), 1e-12)
    scaled: np.ndarray = (np.minimum(strength / brightest, 1.0) * 255).round().astype(np.uint8)
    return scaled


def _stacks(recording: Recording, game: RecordedGame) -> Iterator[UInt8[np.ndarray, "S H W"]]:
    """Yield the input of the network before each decision."""
    size = recording.env.screen_size_pixels
    stacker = FrameStacker(envs=1, stack=recording.env.stack_frames, frame_shape=(size, size))
    for before, _ in pairwise(stacker.push(step.rows)[0].copy() for step in playback(recording, game)):
        yield before  # not the last one: the game is over


@torch.inference_mode()
def _saliency(network: QNetwork, stack: UInt8[np.ndarray, "S H W"]) -> Float32[np.ndarray, "G G"]:
    """Compute ½‖Q(I) − Q(I blurred at a location)‖² for every location."""
    frames = np.concatenate([stack[None], _perturbed(stack)])
    device = next(network.parameters()).device
    values = network(torch.from_numpy(frames).to(device)).cpu().numpy()
    scores: np.ndarray = 0.5 * ((values[1:] - values[:1]) ** 2).sum(axis=1)
    side = round(len(scores) ** 0.5)
    return scores.reshape(side, side)


def _perturbed(stack: UInt8[np.ndarray, "S H W"]) -> UInt8[np.ndarray, "P S H W"]:
    """Return for each location the stack with all its frames blurred there."""
    blurred = np.stack([cv2.GaussianBlur(frame, (0, 0), _BLUR_SIGMA_PIXELS) for frame in stack])
    masks = location_masks(stack.shape[-1])[:, None]
    mixed: np.ndarray = (stack * (1 - masks) + blurred * masks).round().astype(np.uint8)
    return mixed


def location_masks(size_pixels: int) -> Float32[np.ndarray, "P H W"]:
    """Return a Gaussian mask for each location, 1 at its centre."""
    locations = np.arange(SPACING_PIXELS // 2, size_pixels, SPACING_PIXELS, dtype=np.float32)
    pixels = np.arange(size_pixels, dtype=np.float32)
    profile = np.exp(-((pixels - locations[:, None]) ** 2) / (2 * _MASK_SIGMA_PIXELS**2))
    masks: np.ndarray = np.einsum("yh,xw->yxhw", profile, profile).reshape(-1, size_pixels, size_pixels)
    return masks.astype(np.float32)
