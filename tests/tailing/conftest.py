from pathlib import Path

import pytest
from tiny import one_torch_thread, run

__all__ = ["one_torch_thread"]


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny run, trained to its end, under a name with special characters."""
    path = tmp_path_factory.mktemp("followed") / "my run [é]"
    run(path)
    return path
