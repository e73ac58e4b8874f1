"""Check runs of the toy game after a power failure: which checkpoints are whole, and is a resume exact."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from failing_calls import SPEC, Commands
from killing import differences, outcome
from lost_writes import Call, PowerFailure, power_failures, read_recording, write_folder

from atari_dqn.run.checkpoint.reconcile import is_intact

FREQUENT_CHECKPOINTS = ("--set", "evaluation.full_period_frames=300", "--set", "checkpoint.keep_last=2")
"""Options for a run with four checkpoints that keeps few enough to remove one."""


class Recorded:
    """A complete run with its recorded system calls, and the states that a power failure can leave."""

    def __init__(self, commands: Commands, folder: Path) -> None:
        self.commands, self.folder = commands, folder
        self.place = folder / "place"
        self.place.mkdir()
        recording = folder / "recording"
        finished = self._train(watch=str(self.place), record=str(recording))
        assert finished == 0
        self.expected = outcome(self.run)
        self.calls = read_recording(recording)
        shutil.rmtree(self.place)

    @property
    def run(self) -> Path:
        return self.place / "run"

    def failures(self) -> list[PowerFailure]:
        """Return every different state of the folder after a power failure, on both kinds of disk."""
        return list(power_failures(self.calls, self.place))

    def complaints(self, failure: PowerFailure) -> list[str]:
        """List the faults of the run after a power failure, and with its next resume."""
        write_folder(failure.files, self.place)
        try:
            return [*self._lost(failure), *self._wrong_afterwards()]
        finally:
            shutil.rmtree(self.place)

    def _lost(self, failure: PowerFailure) -> Iterator[str]:
        announced = max(announced_steps(self.calls[: failure.calls]), default=0)
        folder = self.run / "checkpoints"
        whole = [int(path.name.removeprefix("step_")) for path in folder.glob("step_*") if is_intact(path)]
        if max(whole, default=0) < announced:
            yield f"step {announced} was reported as saved; newest whole step: {max(whole, default='none')}"

    def _wrong_afterwards(self) -> Iterator[str]:
        begun = self.run.exists()
        code = self._resume() if begun else self._train()
        if code:
            yield f"afterwards: exit {code}: {self._output()}"
        elif different := differences(outcome(self.run), self.expected):
            yield f"afterwards: {', '.join(different)} differ"

    def _train(self, **order: Any) -> int:
        options = ("--plain", *FREQUENT_CHECKPOINTS, "--run-dir", str(self.run))
        return self._code("train", str(SPEC), *options, **order)

    def _resume(self) -> int:
        code = self._code("resume", str(self.run), "--plain")
        return 0 if "is complete at" in self._output() else code

    def _code(self, *words: str, **order: Any) -> int:
        finished = self.commands.run(*words, **order)
        self._last_output = finished.output
        return finished.code

    def _output(self) -> str:
        return self._last_output[-600:]


def announced_steps(calls: list[Call]) -> Iterator[int]:
    """Yield the steps of the checkpoints that events.jsonl reports as saved."""
    for call in calls:
        if call.kind == "write" and call.path.endswith("/events.jsonl"):
            for line in call.data.splitlines():
                event = json.loads(line)
                if event["kind"] == "checkpoint":
                    yield int(event["message"].removeprefix("saved step ").replace(",", ""))
