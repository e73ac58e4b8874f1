from collections.abc import Callable

import pytest

from atari_dqn.envs.games import make_lanes
from atari_dqn.types import Lanes


@pytest.fixture
def lanes_of(request) -> Callable[..., Lanes]:
    """Make lanes as `make_lanes` does, closed when the test ends."""

    def make(**arguments) -> Lanes:
        lanes = make_lanes(**{"seed": 1, "stream": "train", **arguments})
        request.addfinalizer(lanes.close)
        return lanes

    return make
