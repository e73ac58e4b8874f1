from pathlib import Path

import pytest
from tiny import run


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny run, trained to its end, under a name that needs care."""
    path = tmp_path_factory.mktemp("followed") / "my run [é]"
    run(path)
    return path
