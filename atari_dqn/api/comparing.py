"""Compare runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from atari_dqn.api.arguments import check_count, check_finite, path_of
from atari_dqn.api.run import Run
from atari_dqn.compare.comparison import Comparison, compare_readable
from atari_dqn.compare.comparison import compare as compare_all
from atari_dqn.compare.reference.studies import HUMAN_TABLES
from atari_dqn.errors import UserError
from atari_dqn.run.folders import expand_run_paths
from atari_dqn.spec.suggest import did_you_mean


def compare(
    runs: str | Path | Run | Sequence[str | Path | Run],
    *,
    strict: bool = True,
    at_frames: int | None = None,
    to_score: float | None = None,
    human_table: str = "atari57",
) -> Comparison:
    """Compare runs, folders of runs or archives, as `dqn compare` does.

    `runs`: one or several; a folder stands for the runs and archives below it, those of sweeps too. Runs that
    differ in their seed alone are one group. `at_frames`: compare at this frame instead of the final scores.
    `to_score`: the score whose time is measured. Without `strict`, runs that cannot be read, and tunes, are
    left out, and the result names them; with it, their error is raised. `UserError` for no runs, for a path
    that does not exist, for an `at_frames` below 1 or that no run has reached, and for a `human_table` other
    than `atari57` and `nature2015`.

    >>> import atari_dqn as dqn
    >>> comparison = dqn.compare(["outputs/catch"])
    >>> [(result.group.game, result.last.n) for result in comparison.results]
    [('catch', 1)]
    """
    if human_table not in HUMAN_TABLES:
        hint = did_you_mean(human_table, HUMAN_TABLES)
        raise UserError(f"human table: found {human_table!r}, expected {' or '.join(HUMAN_TABLES)}{hint}")
    check_count("at_frames", at_frames)
    check_finite("to_score", to_score)
    paths = expand_run_paths(_paths_of(runs), archives=True)
    compare_runs = compare_all if strict else compare_readable
    comparison = compare_runs(paths, at_frames=at_frames, to_score=to_score, human_table=human_table)
    _refuse_unreached(comparison)
    return comparison


def _refuse_unreached(comparison: Comparison) -> None:
    """Raise `UserError` if no run has reached the frame at which runs are compared."""
    at_frames = comparison.at_frames
    furthest = max(run.reached_frames for result in comparison.results for run in result.group.runs)
    if at_frames is not None and furthest < at_frames:
        raise UserError(f"no run has reached {at_frames:,} frames; the furthest is at {furthest:,}")


def _paths_of(runs: str | Path | Run | Sequence[str | Path | Run]) -> list[Path]:
    """Return the path of each run; `UserError` for none, and for what is no run."""
    several = [runs] if isinstance(runs, str) or not isinstance(runs, Iterable) else list(runs)
    expected = "a run, or the path of a run, a folder of runs or an archive"
    if not several:
        raise UserError(f"runs: found an empty list, expected at least one: {expected}")
    return [run.path if isinstance(run, Run) else path_of("runs", run, expected=expected) for run in several]
