"""Treat denormal floating-point numbers as zero."""

from __future__ import annotations


def flush_denormals() -> None:
    """Let the CPU treat numbers below 1.2e-38 as 0, in this thread and in threads that it starts later.

    The moving average of gradients that are always 0, as those of dead units are, becomes denormal and stays
    so: 0.95 times the smallest denormal number rounds to itself. Operations on denormal numbers take tens of
    times as long; after a few thousand updates an optimizer's step became five times slower. Call this before
    PyTorch starts its threads, which it does at the first large operation: threads started earlier keep the
    slow mode, in which results round differently.
    """
    import torch

    torch.set_flush_denormal(True)  # returns False and does nothing on processors without this mode
