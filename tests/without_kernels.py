"""A machine without the project's own kernels: no compiler was there, or it is a GPU's."""

import pytest

from atari_dqn.fast import acceleration, optimizers, structure


@pytest.fixture(params=["kernels", "torch"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have our own kernels compute, if there are any, and PyTorch."""
    if request.param == "torch":
        leave_to_torch(monkeypatch)


def leave_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what is assembled from now on be computed by PyTorch."""
    monkeypatch.setattr(structure, "unit_for", lambda dtype: None)
    monkeypatch.setattr(structure, "instruction_set", lambda: None)
    monkeypatch.setattr(structure, "libraries_lacking", lambda: ("portable", "products"))
    for module in (acceleration, optimizers):
        monkeypatch.setattr(module, "library", lambda name: None)
