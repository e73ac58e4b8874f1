"""Tunes whose runs are made up: each has the scores of a function of its spec, in the files of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from atari_dqn.run.sweep.failures import Failure
from atari_dqn.run.sweep.record import Member
from atari_dqn.scale.runner import Outcome
from atari_dqn.scale.tuning.folder import Stopwatch, TuneFolder, TuneRecord, write_tune_record
from atari_dqn.scale.tuning.study import Trial, TrialLog
from atari_dqn.scale.tuning.tune_file import load_tune
from atari_dqn.scale.tuning.tuner import Tuner, TuneResult

TINY = Path(__file__).with_name("tiny_catch.toml")
AUTO = {"learner.precision": "fp32", "learner.compile": False}
HEADER = (
    "step,env_frames,eval_type,episodes,mean_return,median_return,min_return,max_return,"
    "mean_length_frames,protocol"
)
Scores = Callable[[Member, int], float]
"""The mean return of a run in the full evaluation at a frame."""


class KilledError(Exception):
    """Ends a command as a kill would."""


class FakeWorkers:
    """Runs a member in an instant: `rows` at a time, until it has finished or is stopped."""

    def __init__(self, folder: TuneFolder, scores: Scores, frames: Sequence[int]) -> None:
        self._folder, self._scores, self._frames = folder.runs, scores, frames
        self._members: dict[str, Member] = {}
        self.begun: list[str] = []
        self.stopped: list[str] = []
        self.failures: dict[str, Failure] = {}
        self.calls = 0
        self.kill_at: int | None = None

    @property
    def running(self) -> list[str]:
        return list(self._members)

    def start(self, members: Sequence[Member]) -> None:
        for member in members:
            if member.name not in self._members:
                self._members[member.name] = member
                self.begun.append(member.name)

    def stop(self, names: Sequence[str]) -> None:
        for name in names:
            self.stopped.append(name)
            del self._members[name]

    def ended(self) -> list[tuple[str, Outcome]]:
        self.calls += 1
        if self.calls == self.kill_at:
            raise KilledError
        ended = []
        for name, member in list(self._members.items()):
            outcome = self._advance(member)
            if outcome is not None:
                ended.append((name, outcome))
                del self._members[name]
        return ended

    def raise_error(self) -> None:
        pass

    def _advance(self, member: Member) -> Outcome | None:
        """Write the next row of a member."""
        if member.name in self.failures:
            return Outcome(kind="failed", failure=self.failures[member.name])
        run = self._folder.path / member.name
        run.mkdir(exist_ok=True)
        table = run / "eval_log.csv"
        rows = table.read_text().splitlines()[1:] if table.exists() else []
        if len(rows) == len(self._frames):
            (run / "summary.json").write_text("{}")
            (run / "spec.toml").touch()
            return Outcome(kind="finished")
        frames = self._frames[len(rows)]
        rows.append(f"0,{frames},full,3,{self._scores(member, frames)},0,0,0,100,p")
        table.write_text("\n".join([HEADER, *rows, ""]))
        return None


def begun(folder: Path, text: str) -> tuple[TuneRecord, TuneFolder]:
    """Begin the tune of a file with a text."""
    path = folder / "mine.toml"
    path.write_text(text)
    record = TuneRecord(tune=load_tune(path), device="cpu", auto=AUTO)
    tune = TuneFolder(folder / "tune")
    tune.runs.create()
    write_tune_record(tune, record)
    return record, tune


def command(
    record: TuneRecord, folder: TuneFolder, scores: Scores, kill_at: int | None = None, **members: Failure
) -> tuple[TuneResult | None, FakeWorkers]:
    """Run a tune as a command does, until it ends or is killed. `members`: those that fail, by name."""
    workers = FakeWorkers(folder, scores, record.tune.evaluation_frames)
    workers.kill_at, workers.failures = kill_at, members
    tuner = Tuner(
        record=record,
        folder=folder,
        log=TrialLog(folder, record.tune, writable=True),
        workers=workers,
        stopwatch=Stopwatch(folder),
        is_interrupted=lambda: False,
        show=lambda: None,
    )
    try:
        return tuner.run(), workers
    except KilledError:
        return None, workers


def trials_of(record: TuneRecord, folder: TuneFolder) -> list[Trial]:
    """Read the trials of a tune from its folder."""
    return TrialLog(folder, record.tune, writable=False).trials()
