from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest


@pytest.fixture
def kept() -> Iterator[Callable[[Any], Any]]:
    """Registers objects that are closed at the end of the test."""
    with ExitStack() as stack:
        yield lambda thing: stack.enter_context(closing(thing))
