"""Any exception while the files of a run are read becomes a reason."""

import pytest

from atari_dqn.errors import DamagedError
from atari_dqn.run.tailing.isolation import Unreadable, attempt


@pytest.mark.fault("H04")
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RecursionError("too deep"), "RecursionError: too deep"),
        (DamagedError("spec.toml: missing"), "spec.toml: missing"),
        (UnicodeDecodeError("utf-8", b"\x9b", 0, 1, "invalid start byte"), "UnicodeDecodeError: "),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_a_run_raises_is_the_reason_why_it_cannot_be_shown(error: Exception, reason: str) -> None:
    def broken() -> None:
        raise error

    found = attempt(broken)
    assert isinstance(found, Unreadable)
    assert found.reason.startswith(reason)
