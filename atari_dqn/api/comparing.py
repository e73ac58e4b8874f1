"""Compare runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from atari_dqn.api.run import Run
from atari_dqn.compare.comparison import Comparison, compare_readable
from atari_dqn.compare.comparison import compare as compare_all
from atari_dqn.run.folders import expand_run_paths


def compare(
    runs: Sequence[str | Path | Run],
    *,
    strict: bool = True,
    at_frames: int | None = None,
    to_score: float | None = None,
    human_table: str = "atari57",
) -> Comparison:
    """Compare runs, folders of runs or archives, as `dqn compare` does.

    Runs that differ in their seed alone are one group. `at_frames`: compare at this frame instead of the
    final scores. `to_score`: the score whose time is measured. Without `strict`, runs that cannot be read are
    left out, and the result names them; with it, their error is raised.

    >>> import atari_dqn as dqn
    >>> comparison = dqn.compare(["outputs/catch"])
    >>> [(result.group.game, result.last.n) for result in comparison.results]
    [('catch', 1)]
    """
    paths = expand_run_paths([run.path if isinstance(run, Run) else Path(run) for run in runs])
    compare_runs = compare_all if strict else compare_readable
    return compare_runs(paths, at_frames=at_frames, to_score=to_score, human_table=human_table)
