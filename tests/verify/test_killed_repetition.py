"""A repetition whose process is killed."""

from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from atari_dqn.errors import InfrastructureError
from atari_dqn.verify import repetition


def killed(*_: Any) -> Future[None]:
    future: Future[None] = Future()
    future.set_exception(BrokenProcessPool())
    return future


def test_repetition_whose_process_is_killed_is_a_fault_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = nullcontext(SimpleNamespace(submit=killed))
    monkeypatch.setattr(repetition, "ProcessPoolExecutor", lambda *_, **__: pool)
    with pytest.raises(InfrastructureError, match="the process that repeats run was killed"):
        repetition.repeat_in_fresh_process(Path("run"), None, "cpu", [1], lambda _: None)
