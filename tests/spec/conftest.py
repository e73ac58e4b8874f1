from collections.abc import Callable
from pathlib import Path

import pytest

MINIMAL = 'track = "A"\ngame = "pong"\nseed = 1\n'


@pytest.fixture
def write_spec(tmp_path: Path) -> Callable[..., Path]:
    """Write a spec file: the three keys every spec has, and then `more`."""

    def write(more: str = "", *, base: str = MINIMAL, name: str = "run.toml") -> Path:
        path = tmp_path / name
        path.write_text(base + more, encoding="utf-8")
        return path

    return write
