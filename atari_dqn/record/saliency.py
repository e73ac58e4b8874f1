"""Where the network looks, after Greydanus et al. (2018), "Visualizing and Understanding Atari Agents".

A place matters if blurring the screen there changes what the network says. P places, G of them each way.
"""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import torch
from jaxtyping import Float32, UInt8

from atari_dqn.agent.network import QNetwork
from atari_dqn.envs.stacking import FrameStacker
from atari_dqn.record.playback import playback
from atari_dqn.record.recording import RecordedGame, Recording

SPACING_PIXELS = 5
"""Between the places; as the paper."""
_BLUR_SIGMA_PIXELS = 3.0
_MASK_SIGMA_PIXELS = 5.0
_BRIGHTEST_QUANTILE = 0.999
"""Saliency of a whole game is scaled by this quantile of it: one scale, so that moments compare."""


def saliency_of(
    recording: Recording,
    game: RecordedGame,
    network: QNetwork,
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> UInt8[np.ndarray, "T G G"]:
    """Return the saliency of every decision of a game, 0 to 255, on one scale for the game."""
    steps = len(game.trace.actions)
    maps = []
    for stack in _stacks(recording, game):
        maps.append(_saliency(network, stack))
        if on_progress:
            on_progress(len(maps), steps)
    # Amplitudes: of ½‖ΔQ‖² itself little but the strongest place would be seen.
    strength = np.sqrt(np.stack(maps))
    brightest = max(float(np.quantile(strength, _BRIGHTEST_QUANTILE)), 1e-12)
    scaled: np.ndarray = (np.minimum(strength / brightest, 1.0) * 255).round().astype(np.uint8)
    return scaled


def _stacks(recording: Recording, game: RecordedGame) -> list[UInt8[np.ndarray, "S H W"]]:
    """Return what the network saw before each decision."""
    size = recording.env.screen_size_pixels
    stacker = FrameStacker(envs=1, stack=recording.env.stack_frames, frame_shape=(size, size))
    seen = [stacker.push(moment.rows)[0].copy() for moment in playback(recording, game)]
    return seen[:-1]


@torch.inference_mode()
def _saliency(network: QNetwork, stack: UInt8[np.ndarray, "S H W"]) -> Float32[np.ndarray, "G G"]:
    """Return ½‖Q(I) − Q(I blurred at a place)‖² for every place."""
    frames = np.concatenate([stack[None], _perturbed(stack)])
    device = next(network.parameters()).device
    values = network(torch.from_numpy(frames).to(device)).cpu().numpy()
    scores: np.ndarray = 0.5 * ((values[1:] - values[:1]) ** 2).sum(axis=1)
    side = round(len(scores) ** 0.5)
    return scores.reshape(side, side)


def _perturbed(stack: UInt8[np.ndarray, "S H W"]) -> UInt8[np.ndarray, "P S H W"]:
    """Return the stack, in all its frames, blurred at one place each."""
    blurred = np.stack([cv2.GaussianBlur(frame, (0, 0), _BLUR_SIGMA_PIXELS) for frame in stack])
    masks = place_masks(stack.shape[-1])[:, None]
    mixed: np.ndarray = (stack * (1 - masks) + blurred * masks).round().astype(np.uint8)
    return mixed


def place_masks(size_pixels: int) -> Float32[np.ndarray, "P H W"]:
    """Return a round mask for each place, 1 at its middle."""
    places = np.arange(SPACING_PIXELS // 2, size_pixels, SPACING_PIXELS, dtype=np.float32)
    pixels = np.arange(size_pixels, dtype=np.float32)
    profile = np.exp(-((pixels - places[:, None]) ** 2) / (2 * _MASK_SIGMA_PIXELS**2))
    masks: np.ndarray = np.einsum("yh,xw->yxhw", profile, profile).reshape(-1, size_pixels, size_pixels)
    return masks.astype(np.float32)
