"""Shows the failure gates what a training does, and halts it where one trips.

Several updates are looked at together, once their numbers have arrived; every update is looked at, and always
before a checkpoint is saved, so that the latest one is good.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from atari_dqn.errors import HaltedError
from atari_dqn.files.atomic import write_failure
from atari_dqn.run.directory import RunDirectory
from atari_dqn.telemetry.events import GateChanged, Notice, Row, Sink
from atari_dqn.telemetry.gates.gates import Gates
from atari_dqn.telemetry.gates.period_gates import PeriodRecord
from atari_dqn.telemetry.gates.update_gates import UpdateRecord
from atari_dqn.train.core_watch import CoreWatch
from atari_dqn.train.diagnostics import README, write_bundle
from atari_dqn.train.resumption import resume_command
from atari_dqn.train.training import Training
from atari_dqn.types import StateDict

HISTORY_UPDATES = 1_000


class Watch:
    """Looks at updates, periods and evaluations; tells the sinks of every gate that changes.

    `HaltedError` from whichever of its methods meets a gate that trips, once a diagnostic bundle is written.
    """

    def __init__(
        self,
        training: Training,
        gates: Gates,
        *,
        check_period_updates: int,
        sinks: Sink,
        run: RunDirectory,
        wait_for_checkpoint: Callable[[], None],
        cores: CoreWatch,
    ) -> None:
        self._training, self._gates, self._sinks, self._run = training, gates, sinks, run
        self._check_period_updates = check_period_updates
        self._wait_for_checkpoint, self._cores = wait_for_checkpoint, cores
        self._updates = training.metrics.reader()
        self._pending: list[list[float]] = []
        """What updates measured that were not looked at yet; oldest first."""
        self._history: deque[UpdateRecord] = deque(maxlen=HISTORY_UPDATES)

    def tick(self) -> None:
        """Look at the updates whose numbers have arrived, if enough have come together, and at the cores."""
        self._cores.poll()
        self._pending += self._updates.arrived().tolist()
        if len(self._pending) >= self._check_period_updates:
            self._look(behind=self._training.metrics.count - self._training.metrics.arrived)

    def check(self) -> None:
        """Look at every update since the last look; wait for those that a device still works on."""
        self._pending += self._updates.all().tolist()
        self._look(behind=0)

    def period(self, throughput: Row) -> None:
        """Look at what is measured once a period, which this row of throughput_log ends."""
        record = PeriodRecord(
            greedy_counts=tuple(self._training.actor.greedy_counts.tolist()),
            dead_unit_share=self._training.dead_unit_share(),
            updates_per_second=float(throughput.values["updates_per_second"]),
            free_disk_bytes=shutil.disk_usage(self._run.path).free,
        )
        self._tell(self._gates.period(record))

    def evaluated(self, mean_return: float) -> bool:
        """Take a full evaluation; return whether its checkpoint is one to inspect."""
        changes = self._gates.evaluation(mean_return)
        self._tell(changes)
        return any(change.state == "warned" for change in changes)

    def replay_report(self, report: Row) -> None:
        """Take a row of replay_log."""
        self._tell(self._gates.replay(float(report.values["effective_share"])))

    def announce(self) -> None:
        """Tell the sinks of a resumed run which gates are not ok."""
        self._tell(self._gates.not_ok())

    def state_dict(self) -> StateDict:
        """Return the gates' states. Comes after `check`."""
        assert not self._pending, "every update has been looked at"
        return self._gates.state_dict()

    def load_state_dict(self, state: StateDict) -> None:
        """Take over what `state_dict` returned."""
        self._gates.load_state_dict(state)

    def _look(self, *, behind: int) -> None:
        """Show the gates what is pending. Of all updates, `behind` came after the last of these."""
        pending, self._pending = self._pending, []
        last = self._training.clock.updates
        for updates_ago, row in zip(range(behind + len(pending) - 1, behind - 1, -1), pending, strict=True):
            record = UpdateRecord(last - updates_ago, *row)
            self._history.append(record)
            self._tell(self._gates.update(record), updates_ago=updates_ago)

    def _tell(self, changes: list[GateChanged], *, updates_ago: int = 0) -> None:
        for change in changes:
            self._sinks.handle(change)
        for change in changes:
            if change.state == "tripped":
                self._halt(change, updates_ago)

    def _halt(self, change: GateChanged, updates_ago: int) -> NoReturn:
        bundle = self._run.diagnostics / f"step_{change.step:09d}"
        message = f"halted by the gate {change.gate}: {change.message}"
        told = f"{message}\n{self._write(bundle, change, updates_ago)}\n{self._way_on()}"
        data = {"gate": change.gate, "diagnostics": str(bundle)}
        self._sinks.handle(
            Notice(kind="halted", step=change.step, env_frames=change.env_frames, message=message, data=data)
        )
        raise HaltedError(told)

    def _write(self, bundle: Path, change: GateChanged, updates_ago: int) -> str:
        """Write the diagnostic bundle; return where it is, or why it is not."""
        try:
            write_bundle(
                bundle,
                change,
                batch=self._training.recent_batch(updates_ago),
                updates=self._history,
                learner=self._training.learner.state_dict(),
                spec=self._run.spec,
            )
        except OSError as error:
            return str(write_failure(bundle, error))
        return f"What to look at first: {bundle / README}"

    def _way_on(self) -> str:
        self._wait_for_checkpoint()
        latest = self._run.checkpoints / "latest"
        if not latest.exists():
            return "No checkpoint had been saved. Mend the cause and start a new run."
        return (
            f"The last checkpoint, {latest.resolve().name}, is of before. `{resume_command(self._run)}` goes "
            "on from it, and halts again unless the cause lay outside the run."
        )
