import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from atari_dqn.fast.pixel_layout import channels_last, patches


def frames(count: int, *, side: int = 36) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, 4, side, side), generator=generator, dtype=torch.uint8)


def test_interleaved_frames_are_the_same_frames_with_a_pixels_values_side_by_side() -> None:
    stacks = frames(3)
    found = channels_last(stacks)
    assert torch.equal(found, stacks)
    assert found.is_contiguous(memory_format=torch.channels_last)


def test_a_patch_is_what_one_kernel_sees_pixel_by_pixel() -> None:
    stacks = torch.randn(2, 4, 13, 17)  # 4 rows of 5 kernels; a row and two columns are unseen
    seen = F.unfold(stacks, 3, stride=3).view(2, 4, 9, 20)  # stack, pixel of the kernel, kernel
    assert torch.equal(patches(stacks, (3,)), seen.permute(0, 3, 2, 1).flatten(2))


def test_patches_of_the_second_layers_kernels_follow_each_other() -> None:
    numbers = torch.arange(1.0, 65.0).view(1, 1, 8, 8)
    # of 2 × 2 kernels of 2 × 2 patches of 2 × 2 pixels, the first pixel of each patch
    assert patches(numbers, (2, 2))[0, :, 0].view(4, 4).tolist() == [
        [1, 3, 17, 19], [5, 7, 21, 23], [33, 35, 49, 51], [37, 39, 53, 55],
    ]  # fmt: skip


def test_patches_of_frames_that_are_a_part_of_others_are_theirs() -> None:
    stacks = channels_last(frames(3, side=13))[1:, :, :, 2:]
    alone = stacks.clone(memory_format=torch.contiguous_format)
    assert torch.equal(patches(stacks, (3,)), patches(alone, (3,)))


def test_places_of_patches_that_an_evaluation_found_serve_learning() -> None:
    stacks = channels_last(torch.randn(5, 4, 6, 6))
    with torch.inference_mode():
        patches(stacks, (3,))
    assert patches(stacks.requires_grad_(), (3,)).requires_grad


def test_patches_that_the_second_layer_does_not_see_are_left_out() -> None:
    assert patches(torch.zeros(3, 4, 84, 84), (5, 5)).shape == (3, 9 * 25, 25 * 4)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_patches_have_the_format_of_their_frames(dtype: torch.dtype) -> None:
    assert patches(torch.zeros(1, 4, 6, 6, dtype=dtype), (3,)).dtype == dtype
