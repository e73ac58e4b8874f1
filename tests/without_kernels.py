"""A machine without the project's own kernels: no compiler was there, or it is a GPU's."""

import pytest

from atari_dqn.agent import fused_step as one_pass
from atari_dqn.fast.cpu import products
from atari_dqn.replay import kernel_tree, ring


@pytest.fixture(params=["kernels", "torch"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have our own kernels compute, if there are any, and PyTorch."""
    if request.param == "torch":
        leave_to_torch(monkeypatch)


def leave_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have PyTorch compute what kernels of our own would here."""
    monkeypatch.setattr(products, "unit_for", lambda dtype: None)
    for module in (one_pass, kernel_tree, ring):
        monkeypatch.setattr(module, "library", lambda name: None)
