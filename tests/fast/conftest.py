import pytest
import torch

from atari_dqn.fast.cpu import library, products  # noqa: F401 - which defines the operators
from atari_dqn.fast.cpu.library import UNITS, units


@pytest.fixture(params=UNITS)
def dtype(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> torch.dtype:
    """Have the kernels run in each unit that this processor has; the format of its numbers."""
    if request.param not in units():
        pytest.skip(f"no kernels for {request.param} on this machine")
    number = UNITS.index(request.param)
    format_ = torch.float32 if request.param.startswith("fp32") else torch.bfloat16
    monkeypatch.setattr(library, "_unit_for", lambda asked: number if asked == format_ else None)
    return format_
