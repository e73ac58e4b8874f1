from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def finished(tiny_run: Callable[..., Path]) -> Path:
    """The tiny run, trained to its end, under a name that needs care."""
    return tiny_run()
