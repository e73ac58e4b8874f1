"""The priority tree of kernels refuses what they would read wrongly."""

import pytest
import torch

from atari_dqn.fast.cpu.library import library
from atari_dqn.fast.cpu.priority_tree import KernelTree

pytestmark = pytest.mark.skipif(library("portable") is None, reason="no kernels of our own on this machine")


def full_tree() -> KernelTree:
    tree = KernelTree(4, device=torch.device("cpu"))
    tree.set(torch.arange(4), torch.ones(4, dtype=torch.float64))
    return tree


def test_masses_in_several_dimensions_are_refused() -> None:
    with pytest.raises(AssertionError):
        full_tree().find(torch.ones(2, 2, dtype=torch.float64))


def test_priorities_in_several_dimensions_are_refused() -> None:
    tree, indices = full_tree(), torch.zeros(2, 2, dtype=torch.int64)
    with pytest.raises(AssertionError):
        tree.set(indices, torch.ones(2, 2, dtype=torch.float64))
    highest = torch.ones((), dtype=torch.float64)
    with pytest.raises(AssertionError):
        tree.set_by_errors(indices, torch.ones(2, 2), offset=0.1, alpha=0.5, highest=highest)
