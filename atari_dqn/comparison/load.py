"""The runs of a comparison, from their directories' files alone."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from atari_dqn.comparison.tables import EVALUATIONS, TIMES, TRAINING_RETURNS, Table, read_tables
from atari_dqn.errors import DamagedError
from atari_dqn.protocol import Protocol
from atari_dqn.run import RunDirectory
from atari_dqn.spec.history import brought_up_to_date
from atari_dqn.spec.keys import Scalar

_TABLES = {"eval_log": EVALUATIONS, "update_log": TRAINING_RETURNS, "throughput_log": TIMES}
_NEEDED = (
    "track", "game", "seed", "toggles.double", "toggles.dueling", "toggles.prioritized", "toggles.n_step",
    "exploration.epsilon_end", "env.max_episode_frames", "training.total_frames",
    "evaluation.light_period_frames",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A value over emulator frames. i64[T], f64[T]; frames never fall."""

    frames: NDArray[np.int64]
    values: NDArray[np.float64]

    def at(self, env_frames: int) -> float:
        """Return the last value at or before a frame; NaN before the first."""
        place = int(np.searchsorted(self.frames, env_frames, side="right")) - 1
        return float(self.values[place]) if place >= 0 else float("nan")


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A row of eval_log."""

    env_frames: int
    kind: str
    """`light`, `full` or `final`."""
    episodes: int
    mean_return: float
    """NaN where the table has no number."""
    frame_caps: int
    """Episodes that the cap cut."""
    protocol_digest: str


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run's identity and what it measured."""

    path: Path
    name: str
    values: dict[str, Scalar]
    """The complete spec, by dotted key."""
    track_label: str
    """The track, with a star if the run deviates from it."""
    deviations: tuple[str, ...]
    versions: str
    """What ran it, in words; runs with other words may differ by more than their seed."""
    protocols: dict[str, Protocol]
    """By fingerprint."""
    evaluations: tuple[Evaluation, ...]
    """In the order of frames."""
    training_returns: Curve
    """Rolling mean of training games."""
    elapsed_seconds: Curve
    torn: tuple[str, ...]
    """Tables whose last row was cut off in the middle; that row is left out."""

    @property
    def game(self) -> str:
        """Which game it plays."""
        return str(self.values["game"])

    @property
    def seed(self) -> int:
        """Which seed it has."""
        return int(self.values["seed"])

    @property
    def finished(self) -> bool:
        """Whether the run came to the end of its budget."""
        return any(evaluation.kind == "final" for evaluation in self.evaluations)

    @property
    def final_frames(self) -> int:
        """The frames of its final evaluation; 0 for a run that is not finished."""
        return max((each.env_frames for each in self.evaluations if each.kind == "final"), default=0)

    @property
    def reached_frames(self) -> int:
        """How far the tables go."""
        evaluated = self.evaluations[-1].env_frames if self.evaluations else 0
        timed = self.elapsed_seconds.frames
        return max(evaluated, int(timed[-1]) if len(timed) else 0)

    @property
    def total_frames(self) -> int:
        """The budget of the spec; `dqn resume --frames` may have raised it."""
        return int(self.values["training.total_frames"])

    @property
    def evaluation_period_frames(self) -> int:
        """Frames between evaluations."""
        return int(self.values["evaluation.light_period_frames"])


def load_runs(paths: Sequence[Path]) -> list[Run]:
    """Read run directories.

    `UserError` for one that is none; `DamagedError` if a file is missing or not what a run writes.
    """
    directories = [RunDirectory.open(path) for path in paths]
    tables = {
        name: read_tables([run.tables / f"{name}.csv" for run in directories], columns)
        for name, columns in _TABLES.items()
    }
    return [
        _run(run, {name: read[place] for name, read in tables.items()})
        for place, run in enumerate(directories)
    ]


def _run(directory: RunDirectory, tables: Mapping[str, Table]) -> Run:
    provenance = directory.read_provenance()
    track = provenance.get("track") or {}
    return Run(
        path=directory.path,
        name=str(provenance.get("name", directory.path.name)),
        values=_spec_values(directory.spec),
        track_label=str(track.get("label", "?")),
        deviations=tuple(track.get("deviations", ())),
        versions=_versions(provenance),
        protocols=_protocols(directory.provenance, provenance),
        evaluations=_evaluations(tables["eval_log"].columns),
        training_returns=_curve(tables["update_log"].columns),
        elapsed_seconds=_curve(tables["throughput_log"].columns),
        torn=tuple(f"{name}.csv" for name, table in tables.items() if table.torn),
    )


def _spec_values(path: Path) -> dict[str, Scalar]:
    """Return a run's complete spec by dotted key, as its file has it.

    Not as a `Spec`: runs of other versions of this program, with other keys, can be compared too.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DamagedError(f"{path}: is not TOML ({error})") from error
    values: dict[str, Scalar] = {}
    for name, value in tables.items():
        entries = (
            {f"{name}.{key}": item for key, item in value.items()}
            if isinstance(value, dict)
            else {name: value}
        )
        values.update(entries)
    missing = [key for key in _NEEDED if key not in values]
    if missing:
        raise DamagedError(f"{path}: no {', '.join(missing)}; expected the complete spec of a run")
    return {**values, **brought_up_to_date(values)}


def _evaluations(table: pl.DataFrame) -> tuple[Evaluation, ...]:
    columns = (table[name].to_list() for name in EVALUATIONS)
    return tuple(
        Evaluation(
            env_frames=frames,
            kind=kind,
            episodes=episodes,
            mean_return=mean_return,
            frame_caps=frame_caps,
            protocol_digest=protocol,
        )
        for frames, kind, episodes, mean_return, frame_caps, protocol in zip(*columns, strict=True)
    )


def _curve(table: pl.DataFrame) -> Curve:
    frames, values = table.columns
    return Curve(frames=table[frames].to_numpy(), values=table[values].to_numpy())


def _protocols(path: Path, provenance: dict[str, Any]) -> dict[str, Protocol]:
    try:
        return {digest: Protocol(**words) for digest, words in provenance.get("protocols", {}).items()}
    except (TypeError, AttributeError) as error:
        raise DamagedError(f"{path}: `protocols` is not what a run records: {error}") from error


def _versions(provenance: dict[str, Any]) -> str:
    versions = provenance.get("versions") or {}
    commit = (provenance.get("git") or {}).get("commit") or ""
    names = ("atari_dqn", "torch", "ale-py")
    told = [f"{name} {versions[name]}" for name in names if versions.get(name)]
    return ", ".join([*told, f"commit {commit[:9]}"] if commit else told)
