"""Run the trials of a tune until its budget is used up."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from atari_dqn.run.sweep.failures import Failure, read_failures
from atari_dqn.run.sweep.record import Member
from atari_dqn.scale.runner import Outcome
from atari_dqn.scale.scheduler import Workers, saved_on_error
from atari_dqn.scale.takeover import release_ended
from atari_dqn.scale.tuning.folder import Stopwatch, TuneFolder, TuneRecord
from atari_dqn.scale.tuning.pruning import Step, is_pruned, may_prune, steps_of
from atari_dqn.scale.tuning.study import State, Trial, TrialLog, with_first_equal
from atari_dqn.scale.tuning.trials import TrialRuns, members_of
from atari_dqn.spec.errors import SpecError

MOST_REPEATED = 25
"""A tune ends once so many trials in a row had values of earlier trials: little is left to try."""
_SECONDS_PER_HOUR = 3_600


@dataclass(frozen=True, kw_only=True)
class TuneResult:
    """How the work of a command on a tune ended."""

    is_complete: bool
    """Whether the budget is used up and every trial has ended."""
    failure: tuple[str, Failure] | None
    """A run that failed for a reason other than its values, and why."""


@dataclass(kw_only=True)
class Tuner:
    """Begins trials, lets their members run, and decides how each trial ends.

    A trial ends complete with its objective, pruned by the median rule, or failed: a failure gate halted one
    of its runs, or its values contradict each other. A run that fails for another reason, such as a full
    disk, ends the command instead; the next one tries it again.
    """

    record: TuneRecord
    folder: TuneFolder
    log: TrialLog
    workers: Workers
    stopwatch: Stopwatch
    is_interrupted: Callable[[], bool]
    show: Callable[[], None]
    """Called about each second."""
    _open: dict[int, TrialRuns] = field(default_factory=dict)
    _failure: tuple[str, Failure] | None = None

    def __post_init__(self) -> None:
        self._steps = steps_of(self.record.tune)

    def run(self) -> TuneResult:
        """Run trials until the budget is used up, or until an interrupt; return how it ended."""
        with saved_on_error(self.workers, self._handle):
            while self._advance():
                self.stopwatch.save()
                self.show()
        release_ended(self.folder.runs, self.folder.runs.leases.current().keys() - self._wanted().keys())
        self.stopwatch.save(now=True)
        have_ended = all(trial.state != "running" for trial in self.log.trials())
        return TuneResult(is_complete=have_ended and not self._has_budget(), failure=self._failure)

    def _advance(self) -> bool:
        """Begin, decide and stop what is due, and wait a moment; return False if all has ended."""
        self.workers.raise_error()
        self._decide_all()
        is_stopping = self._failure is not None or self.is_interrupted()
        if not is_stopping:
            self._begin_trials()
        wanted = {} if is_stopping else self._wanted()
        self.workers.stop([name for name in self.workers.running if not self._goes_on(name, wanted)])
        if not self.workers.running and not wanted:
            return False
        if wanted:
            self.workers.start(list(wanted.values()))
        self._handle(self.workers.ended())
        return True

    def _wanted(self) -> dict[str, Member]:
        """Return the members that have to run, by name; trials with the same values share theirs."""
        return {member.name: member for runs in self._open.values() for member in runs.unfinished()}

    def _goes_on(self, name: str, wanted: Collection[str]) -> bool:
        """Return whether a running member is needed, or has finished and ends by itself."""
        return name in wanted or self.folder.runs.has_finished(name)

    def _begin_trials(self) -> None:
        """Go on with trials that began earlier, and begin new ones as long as the budget lasts."""
        for trial, number in with_first_equal(self.log.trials()):
            if trial.state == "running" and trial.number not in self._open:
                self._go_on(trial, number)
        while len(self._open) < self.record.tune.sampler.trials_at_once and self._has_budget():
            self.log.suggest()
            trial, number = list(with_first_equal(self.log.trials()))[-1]
            self._go_on(trial, number)

    def _has_budget(self) -> bool:
        budget = self.record.tune.budget
        is_in_time = budget.hours is None or self.stopwatch.seconds < budget.hours * _SECONDS_PER_HOUR
        trials = list(with_first_equal(self.log.trials()))
        last = trials[-MOST_REPEATED:]
        is_exhausted = len(last) == MOST_REPEATED and all(first < trial.number for trial, first in last)
        return is_in_time and not is_exhausted and (budget.trials is None or len(trials) < budget.trials)

    def _go_on(self, trial: Trial, number: int) -> None:
        """Open a trial, whose runs have the number of the first trial with the same values."""
        try:
            members = members_of(self.record, number, trial.settings)
        except SpecError as error:
            self.log.finish(trial, "failed", reason=" ".join(str(error).splitlines()))
            return
        runs = self._open[trial.number] = TrialRuns(self.record, self.folder.runs, members)
        for name, failure in read_failures(self.folder.runs.failures).items():
            if failure.kind == "halted":
                runs.halt(name, failure.reason)
            else:  # says something about the machine, not about the values: it is tried again
                self.folder.runs.failure(name).unlink(missing_ok=True)
        self._decide(trial)

    def _decide_all(self) -> None:
        trials = self.log.trials()
        for number in list(self._open):
            self._decide(trials[number])

    def _decide(self, trial: Trial) -> None:
        """End a trial if its runs have all evaluations, or if it is pruned by those that they have."""
        runs = self._open[trial.number]
        runs.refresh()
        values: list[float] = []
        for index, step in enumerate(self._steps):
            value = runs.objective(step)
            if value is None:
                reason = runs.halted_before(step)
                if reason is not None:
                    self._end(trial, "failed", reason)
                return
            if math.isnan(value):
                self._end(trial, "failed", f"the score of {step} is not a number")
                return
            values.append(value)
            if index not in trial.steps:
                self.log.report(trial, index, value)
            if index == len(self._steps) - 1:
                self._open.pop(trial.number)
                self.log.finish(trial, "complete", value)
            elif self._is_pruned(values, step, trial):
                self._end(trial, "pruned", f"worse than the median after {step}")
                return

    def _is_pruned(self, values: Sequence[float], step: Step, trial: Trial) -> bool:
        pruning = self.record.tune.pruning
        if pruning is None or not may_prune(pruning, step):
            return False
        earlier = [each for each in self.log.trials() if each.number != trial.number]
        maximize = self.record.tune.objective.direction == "maximize"
        return is_pruned(values, earlier, maximize=maximize, startup_trials=pruning.startup_trials)

    def _end(self, trial: Trial, state: State, reason: str) -> None:
        self._open.pop(trial.number)
        self.log.finish(trial, state, reason=reason)

    def _handle(self, outcomes: Sequence[tuple[str, Outcome]]) -> None:
        """Note runs that a gate has halted; end the command for a failure of another kind."""
        for name, outcome in outcomes:
            if outcome.failure is None:
                continue
            if outcome.failure.kind != "halted":
                self._failure = (name, outcome.failure)
                continue
            for runs in self._open.values():
                runs.halt(name, outcome.failure.reason)
