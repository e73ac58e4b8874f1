"""How near to a result in double precision a kernel's must be, and how many threads it has."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

ROUNDING = {torch.float32: 1e-5, torch.bfloat16: 1 / 200}
"""Of the largest number; bf16 keeps 8 bits, and rounds by up to a 512th."""


def assert_near(found: torch.Tensor, exact: torch.Tensor, *, roundings: int = 1) -> None:
    """Have numbers be `exact` but for roundings to their format, and one of fp32 in their sums."""
    assert found.shape == exact.shape
    apart = (found.double() - exact).abs().max()
    assert apart <= roundings * ROUNDING[found.dtype] * exact.abs().max()


@contextmanager
def threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    yield
    torch.set_num_threads(before)
