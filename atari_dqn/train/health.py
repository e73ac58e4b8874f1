"""Pass the measurements of a training to the failure gates, and halt it if a gate trips.

Updates are checked in groups, once their metrics have arrived from the device. All updates are checked before
a checkpoint is saved, so that the latest checkpoint is from before the fault.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from atari_dqn.errors import HaltedError
from atari_dqn.files.failures import write_failure
from atari_dqn.run.directory import RunDirectory
from atari_dqn.telemetry.events import GateChanged, Notice, Row, Sink
from atari_dqn.telemetry.gates.gate_set import Gates
from atari_dqn.telemetry.gates.period_gates import PeriodRecord
from atari_dqn.telemetry.gates.update_gates import UpdateRecord
from atari_dqn.train.contention_monitor import ContentionMonitor
from atari_dqn.train.diagnostic_bundle import README, write_bundle
from atari_dqn.train.learning import Learning
from atari_dqn.train.resume_point import resume_command
from atari_dqn.types import StateDict

HISTORY_UPDATES = 1_000


def dead_unit_share(training: Learning) -> float | None:
    """Compute the share of hidden units that are 0 for the whole latest minibatch; None without one."""
    batch = training.recent.gather()
    return None if batch is None else training.diagnostics.dead_unit_share(training.learner.online, batch)


class HealthMonitor:
    """Checks updates, periods and evaluations, and reports every state change of a gate to the sinks.

    If a gate trips, any method writes a diagnostic bundle and raises `HaltedError`.
    """

    def __init__(
        self,
        training: Learning,
        gates: Gates,
        *,
        check_period_updates: int,
        sinks: Sink,
        run: RunDirectory,
        wait_for_checkpoint: Callable[[], None],
        contention: ContentionMonitor,
    ) -> None:
        self._training, self._gates, self._sinks, self._run = training, gates, sinks, run
        self._check_period_updates = check_period_updates
        self._wait_for_checkpoint, self._contention = wait_for_checkpoint, contention
        self._updates = training.metrics.reader()
        self._pending: list[list[float]] = []
        """Metrics of updates that were not checked yet, oldest first."""
        self._history: deque[UpdateRecord] = deque(maxlen=HISTORY_UPDATES)

    def poll(self) -> None:
        """Check the updates whose metrics have arrived, if there are enough, and the contention of cores."""
        self._contention.poll()
        self._pending += self._updates.arrived().tolist()
        if len(self._pending) >= self._check_period_updates:
            self._check_pending(behind=self._training.metrics.count - self._training.metrics.arrived)

    def check_updates(self) -> None:
        """Check every pending update, waiting for metrics that are still on the device."""
        self._pending += self._updates.all().tolist()
        self._check_pending(behind=0)

    def check_period(self, throughput: Row) -> None:
        """Check the measurements of a period, which ends with this row of throughput_log."""
        record = PeriodRecord(
            greedy_counts=self._training.greedy_counts,
            dead_unit_share=dead_unit_share(self._training),
            updates_per_second=float(throughput.values["updates_per_second"]),
            free_disk_bytes=shutil.disk_usage(self._run.path).free,
        )
        self._report(self._gates.check_period(record))

    def check_evaluation(self, mean_return: float) -> bool:
        """Check a full evaluation; return whether its checkpoint should be tagged for inspection."""
        changes = self._gates.check_evaluation(mean_return)
        self._report(changes)
        return any(change.state == "warned" for change in changes)

    def check_replay(self, report: Row) -> None:
        """Check a row of replay_log."""
        self._report(self._gates.check_replay(float(report.values["effective_share"])))

    def announce(self) -> None:
        """Report the gates of a resumed run that are not ok."""
        self._report(self._gates.not_ok())

    def state_dict(self) -> StateDict:
        """Return the states of the gates. Call `check_updates` before."""
        assert not self._pending, "every update has been checked"
        return self._gates.state_dict()

    def load_state_dict(self, state: StateDict) -> None:
        """Load the states of the gates."""
        self._gates.load_state_dict(state)

    def _check_pending(self, *, behind: int) -> None:
        """Check the pending updates. `behind`: number of updates after the last of them."""
        pending, self._pending = self._pending, []
        newest = self._training.clock.updates
        first = newest - behind - len(pending) + 1
        for number, row in enumerate(pending, start=first):
            record = UpdateRecord(number, *row)
            self._history.append(record)
            self._report(self._gates.check_update(record), updates_ago=newest - number)

    def _report(self, changes: list[GateChanged], *, updates_ago: int = 0) -> None:
        for change in changes:
            self._sinks.handle(change)
        for change in changes:
            if change.state == "tripped":
                self._halt(change, updates_ago)

    def _halt(self, change: GateChanged, updates_ago: int) -> NoReturn:
        bundle = self._run.diagnostics / f"step_{change.step:09d}"
        message = f"halted by the gate {change.gate}: {change.message}"
        details = f"{message}\n{self._write(bundle, change, updates_ago)}\n{self._remedy()}"
        data = {"gate": change.gate, "diagnostics": str(bundle)}
        self._sinks.handle(
            Notice(kind="halted", step=change.step, env_frames=change.env_frames, message=message, data=data)
        )
        raise HaltedError(details)

    def _write(self, bundle: Path, change: GateChanged, updates_ago: int) -> str:
        """Write the diagnostic bundle; return a sentence with its path, or the error."""
        try:
            write_bundle(
                bundle,
                change,
                batch=self._training.recent.gather(updates_ago),
                updates=self._history,
                learner=self._training.learner.state_dict(),
                spec=self._run.spec,
            )
        except OSError as error:
            return str(write_failure(bundle, error))
        except RuntimeError as error:  # a GPU is out of memory, which must not hide why the run halts
            return f"{bundle}: cannot be written: {next(iter(str(error).splitlines()), '')}"
        return f"Read first: {bundle / README}"

    def _remedy(self) -> str:
        self._wait_for_checkpoint()
        latest = self._run.checkpoints / "latest"
        if not latest.exists():
            return "No checkpoint was saved. Fix the cause and start a new run."
        return (
            f"The last checkpoint, {latest.resolve().name}, is from before the fault. "
            f"`{resume_command(self._run)}` continues from it, and halts again unless the cause was outside "
            "the run."
        )
