"""A run on disk: its spec, scores, tables and agents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atari_dqn.api.arguments import path_of
from atari_dqn.errors import UserError
from atari_dqn.files.documents import read_json
from atari_dqn.run.archive.archive import is_archive
from atari_dqn.run.archive.opening import opened_run
from atari_dqn.run.logged_events import current_budget
from atari_dqn.run.recorded_scores import RecordedScore, scores_of
from atari_dqn.spec.loader import load_resolved
from atari_dqn.spec.schema import Spec
from atari_dqn.telemetry.columns import TABLES

if TYPE_CHECKING:
    import polars as pl

    from atari_dqn.api.agent import Agent


class Run:
    """A run directory, or an archive, for reading. `path`, `spec` and `provenance` are attributes too.

    >>> import atari_dqn as dqn
    >>> run = dqn.Run("outputs/catch")
    >>> run.spec.game, run.finished
    ('catch', True)
    >>> run.tables["eval_log"].filter(eval_type="final").select("step", "episodes").row(0)
    (500, 4)
    >>> [score.kind for score in run.scores][-1]
    'final'
    >>> run.agent("best").game
    'catch'
    """

    def __init__(self, path: str | Path) -> None:
        """Open a run; `UserError` if the path is neither a run nor an archive, `DamagedError` for damage."""
        self.path = path_of("path", path, expected="the path of a run or an archive")
        with opened_run(self.path) as run:
            self.provenance: Mapping[str, Any] = run.read_provenance()
            self.spec: Spec = load_resolved(run.spec, self.provenance).spec

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @property
    def scores(self) -> list[RecordedScore]:
        """Every score so far, with protocols and the return of each game."""
        return scores_of(self.path)

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables that there are, by name, read anew; `telemetry.columns` declares their columns.

        An empty cell is null, and a row that is being written is left out. `DamagedError` for a table that
        cannot be read.
        """
        from atari_dqn.api.table import read_table  # polars takes half a second to import

        with opened_run(self.path) as run:
            paths = {name: run.tables / f"{name}.csv" for name in TABLES}
            return {name: read_table(path) for name, path in paths.items() if path.exists()}

    @property
    def summary(self) -> Mapping[str, Any] | None:
        """The result of a finished run; None before its end, and for an archive."""
        path = self.path / "summary.json"
        return read_json(path) if path.exists() else None

    @property
    def finished(self) -> bool:
        """Whether the run has its final score at its budget, which `dqn resume --frames` may have raised."""
        with opened_run(self.path) as run:
            budget_frames = current_budget(run.events) or self.spec.training.total_frames
        return any(score.kind == "final" and score.env_frames >= budget_frames for score in self.scores)

    def agent(self, checkpoint: str = "latest", *, device: str = "auto") -> Agent:
        """Load the agent of a checkpoint: `latest`, `best`, or a name such as `step_000400000`.

        `UserError` for a name that there is not, and for any but `latest` of an archive, which has one agent.
        """
        from atari_dqn.api.agent import load

        if not is_archive(self.path):
            place = self.path / "checkpoints" / checkpoint
            if not place.is_dir():
                raise UserError(f"{self.path}: no checkpoint {checkpoint!r}; expected latest, best or a name")
            return load(place, device=device)
        if checkpoint != "latest":
            raise UserError(f"{self.path}: is an archive of one agent, found checkpoint {checkpoint!r}")
        return load(self.path, device=device)
