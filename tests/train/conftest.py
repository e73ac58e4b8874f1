import shutil
from pathlib import Path

import pytest


@pytest.fixture
def copied(whole: Path, tmp_path: Path) -> Path:
    """A copy of the module's run `whole`, to be damaged."""
    path = tmp_path / "run"
    shutil.copytree(whole, path, symlinks=True)
    return path
