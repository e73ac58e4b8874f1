"""Runs `dqn` commands, each in a process forked from one that has imported everything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Self

SERVER = Path(__file__).with_name("command_server.py")
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "COLUMNS": "80"}


@dataclass(frozen=True, kw_only=True)
class Finished:
    """Exit code, standard output and standard error of a command that has ended."""

    code: int
    out: str
    err: str

    @property
    def output(self) -> str:
        """What both streams show."""
        return self.out + self.err


class CommandServer:
    """Forks a process for each `dqn` command. Use with `with`; outputs are written to files in `folder`."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self._environment = {**ENVIRONMENT, **(environment or {})}
        self._numbers = count()

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, str(SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **self._environment},
        )
        assert self._answer() == "ready"
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            pass

    def run(
        self, *words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None, **order: Any
    ) -> Finished:
        """Run a command to its end. `order`: further entries of the order, see command_server.py."""
        number = next(self._numbers)
        files = {name: self.folder / f"{number}.{name}" for name in ("output", "errors")}
        written = {
            "words": [str(word) for word in words],
            "cwd": str(cwd or Path.cwd()),
            "env": {**os.environ, **self._environment, **(env or {})},
            **{name: str(path) for name, path in files.items()},
            **order,
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(written) + "\n")
        self._process.stdin.flush()
        code = int(self._answer())
        out, err = (path.read_text(errors="replace") for path in files.values())
        for path in files.values():
            path.unlink()
        return Finished(code=code, out=out, err=err)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the command server is dead"
        return line.strip()
