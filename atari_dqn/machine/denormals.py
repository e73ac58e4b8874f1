"""Numbers too small for a float's usual form."""

from __future__ import annotations


def flush_denormals() -> None:
    """Have the CPU take numbers below 1.2e-38 as 0, in this thread and those it starts from now on.

    A moving average of gradients that are 0, as those of a dead unit are, falls below that and stays there:
    0.95 times the smallest number is rounded up to itself. A processor takes tens of times as long for each
    such number; after some thousand updates an optimizer's step took five times its time. PyTorch's threads
    are started by the first large operation: call this before, or they go on slowly and round otherwise.
    """
    import torch

    torch.set_flush_denormal(True)  # False where a processor cannot: then nothing changes
