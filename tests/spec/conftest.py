from collections.abc import Callable
from pathlib import Path

import pytest

MINIMAL = 'track = "A"\ngame = "pong"\nseed = 1\n'


@pytest.fixture
def write_spec(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a spec file: track, game and seed, followed by `more`."""

    def write(more: str = "", *, base: str = MINIMAL, name: str = "run.toml") -> Path:
        path = tmp_path / name
        path.write_text(base + more, encoding="utf-8")
        return path

    return write
