from collections.abc import Callable

import pytest

from atari_dqn.envs.games import make_envs
from atari_dqn.types import Environments


@pytest.fixture
def envs_of(request) -> Callable[..., Environments]:
    """Make environments as `make_envs` does, closed when the test ends."""

    def make(**arguments) -> Environments:
        envs = make_envs(**{"seed": 1, "stream": "train", **arguments})
        request.addfinalizer(envs.close)
        return envs

    return make
