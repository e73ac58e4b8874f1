from collections.abc import Callable

import pytest

from atari_dqn.envs.games import make_envs
from atari_dqn.types import Environments


@pytest.fixture
def envs_of(request) -> Callable[..., Environments]:
    """Return a function that calls `make_envs` and closes the environments after the test."""

    def make(**arguments) -> Environments:
        envs = make_envs(**{"seed": 1, "stream": "train", **arguments})
        request.addfinalizer(envs.close)
        return envs

    return make
