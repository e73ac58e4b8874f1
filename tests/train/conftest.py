import shutil
from pathlib import Path

import pytest


@pytest.fixture
def copied(whole: Path, tmp_path: Path) -> Path:
    """A copy of the run `whole` of the module that a test may damage."""
    path = tmp_path / "run"
    shutil.copytree(whole, path, symlinks=True)
    return path
