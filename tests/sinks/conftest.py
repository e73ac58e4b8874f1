from collections.abc import Callable
from pathlib import Path

import pytest
from tiny import tiny_spec

from atari_dqn.spec.keys import flatten
from atari_dqn.telemetry.sinks.target import Target


@pytest.fixture
def target(tmp_path: Path) -> Callable[[], Target]:
    """Returns the target of a run in a directory whose name has a space and an accent."""

    def make() -> Target:
        directory = tmp_path / "my run é"
        directory.mkdir(exist_ok=True)
        return Target(directory=directory, name="my run é", track_label="A*", values=flatten(tiny_spec()))

    return make
