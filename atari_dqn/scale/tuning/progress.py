"""The progress of a tune at work: a screen of text for a terminal, and sentences on what has changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from itertools import islice
from textwrap import wrap

from atari_dqn.formatting import count, duration, measure, percentage
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.progress import RunProgress
from atari_dqn.scale.tuning.ranking import Standing
from atari_dqn.scale.tuning.study import State, Trial
from atari_dqn.scale.tuning.table import (
    heading,
    objective_line,
    ranked_lines,
    settings_text,
    totals_line,
    unit_of,
)

_FEWEST_TRIALS = 3
_MOST_RUNS = 6
_OTHER_ROWS = 5
"""The heading, the number of trials that are not shown, two empty rows, and that of the cursor."""


class TuneProgress:
    """Describes a tune from its present standing and the runs that run."""

    def __init__(
        self, read: Callable[[], Standing], running: Callable[[], Collection[str]], folder: SweepFolder
    ) -> None:
        self._read, self._running, self._folder = read, running, folder
        self._runs: dict[str, RunProgress] = {}
        trials = read().trials
        self._states: dict[int, State] = {
            trial.number: trial.state for trial in trials if trial.state != "running"
        }
        self._earlier = len(trials)

    def screen(self, columns: int, rows: int) -> list[str]:
        """Return the lines of a screen: the trials, the runs that run, totals and objective."""
        standing = self._read()
        runs = list(islice(self._run_lines(standing), _MOST_RUNS))
        below = [*wrap(totals_line(standing), columns), *wrap(objective_line(standing), columns)]
        most = max(_FEWEST_TRIALS, rows - len(runs) - len(below) - _OTHER_ROWS)
        trials = list(ranked_lines(standing, columns, most))
        return [heading(columns), *trials, *([""] if runs else []), *runs, "", *below]

    def news(self) -> Iterator[str]:
        """Yield a sentence for each trial whose state has changed since the last call."""
        standing = self._read()
        for trial in standing.trials:
            if self._states.get(trial.number) != trial.state:
                self._states[trial.number] = trial.state
                goes_on = " goes on" if trial.state == "running" and trial.number < self._earlier else ""
                yield f"trial {trial.number}{goes_on}: {_change(trial, standing)}"

    def _run_lines(self, standing: Standing) -> Iterator[str]:
        at_frames = standing.record.tune.objective.at_frames
        for name in sorted(self._running()):
            run = self._runs.setdefault(name, RunProgress(self._folder.path / name, at_frames))
            run.refresh()
            share = percentage(min(1.0, run.env_frames / at_frames), decimals=0)
            rate = f", {count(run.frames_per_second)} frames/s" if run.frames_per_second > 0 else ""
            frames_left = max(0, at_frames - run.env_frames)  # the budget of the spec is larger
            left = f", {duration(frames_left / run.frames_per_second)} left" if rate else ""
            yield f"{name}: {count(run.env_frames)} of {count(at_frames)} frames, {share}{rate}{left}"


def _change(trial: Trial, standing: Standing) -> str:
    match trial.state:
        case "running":
            return settings_text(trial.settings, standing.record.tune.keys)
        case "complete":
            first, rank = standing.first[trial.number], standing.ranks.get(trial.number)
            place = f"its values are those of trial {first}" if rank is None else f"rank {rank}"
            return f"complete, {measure(trial.value)} ({unit_of(standing)}), {place}"
        case "pruned":
            return f"pruned: {trial.reason}"
        case "failed":
            return "failed; the reason is shown at the end and by --status"
