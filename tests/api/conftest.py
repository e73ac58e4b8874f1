"""A finished run for the tests of a file."""

from pathlib import Path

import pytest
from tiny import run


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    run(path)
    return path
