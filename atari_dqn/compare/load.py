"""The runs of a comparison, from their directories' files alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from atari_dqn.compare.reference.caps import stands_for_games
from atari_dqn.compare.tables import EVALUATIONS, TIMES, TRAINING_RETURNS, Table, read_tables
from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import exists, is_file
from atari_dqn.files.documents import check_types, checked
from atari_dqn.formatting import printable
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.provenance import Provenance
from atari_dqn.spec.history import with_added_keys
from atari_dqn.spec.keys import Scalar
from atari_dqn.spec.loader import AUTO_KEYS
from atari_dqn.spec.protocol import Protocol
from atari_dqn.spec.recorded import spec_values

_TABLES = {"eval_log": EVALUATIONS, "update_log": TRAINING_RETURNS, "throughput_log": TIMES}
_NEEDED: Mapping[str, type] = {
    "track": str, "game": str, "seed": int, "toggles.double": bool, "toggles.dueling": bool,
    "toggles.prioritized": bool, "toggles.n_step": int, "exploration.epsilon_end": float,
    "env.max_episode_frames": int, "env.num_envs": int, "env.frame_skip": int, "training.total_frames": int,
    "evaluation.light_period_frames": int,
}  # fmt: skip

_MOST_TABLE_BYTES = 2**28
"""Far more than a run of 200 million frames writes."""


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
    max_episode_frames: int | None
    """The cap; None where the run's provenance does not have the protocol."""
    protocol_digest: str

    @property
    def comparable(self) -> bool:
        """Whether the score stands for whole games, or for games that published ones were cut like."""
        return stands_for_games(self.frame_caps, self.max_episode_frames)


@dataclass(frozen=True, kw_only=True)
class Run:
    """A run's identity and what it measured."""

    path: Path
    name: str
    values: dict[str, Scalar]
    """The complete spec, by dotted key."""
    auto_keys: frozenset[str]
    """Keys whose values the machine chose when the run started, because they were `auto`."""
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
    def iteration_frames(self) -> int:
        """Frames of a step in all environments: what is due comes fewer than so many frames later."""
        return int(self.values["env.num_envs"]) * int(self.values["env.frame_skip"])

    @property
    def evaluation_period_frames(self) -> int:
        """Frames between evaluations."""
        return int(self.values["evaluation.light_period_frames"])


def load_runs(paths: Sequence[Path]) -> list[Run]:
    """Read run directories.

    `UserError` for one that is none; `DamagedError` if a file is missing or not what a run writes.
    """
    directories = [_opened(path) for path in paths]
    tables = {
        name: read_tables([run.tables / f"{name}.csv" for run in directories], columns)
        for name, columns in _TABLES.items()
    }
    return [
        _run(run, {name: read[place] for name, read in tables.items()})
        for place, run in enumerate(directories)
    ]


def _opened(path: Path) -> RunDirectory:
    """Open a run whose tables are regular files of a run's size: a pipe would be waited for without end."""
    directory = RunDirectory.open(path)
    for name in _TABLES:
        _refuse_other_table(directory.tables / f"{name}.csv")
    return directory


def _refuse_other_table(path: Path) -> None:
    if exists(path) and not is_file(path):
        raise DamagedError(f"{path}: is no regular file")
    if exists(path) and path.stat().st_size > _MOST_TABLE_BYTES:
        raise DamagedError(f"{path}: is larger than {_MOST_TABLE_BYTES:,} bytes")


def _run(directory: RunDirectory, tables: Mapping[str, Table]) -> Run:
    provenance = checked(directory.provenance, directory.read_provenance(), Provenance)
    protocols = checked(directory.provenance, provenance.protocols, dict[str, Protocol], key="protocols")
    track = provenance.track
    values = _spec_values(directory.spec)
    return Run(
        path=directory.path,
        name=printable(provenance.name or directory.path.name),
        values=values,
        auto_keys=frozenset(provenance.auto) & set(AUTO_KEYS) & set(values),
        track_label=printable(track.label) if track else "?",
        deviations=tuple(map(printable, track.deviations)) if track else (),
        versions=_versions(provenance),
        protocols={printable(digest): protocol for digest, protocol in protocols.items()},
        evaluations=_evaluations(tables["eval_log"].columns, protocols),
        training_returns=_curve(tables["update_log"].columns),
        elapsed_seconds=_curve(tables["throughput_log"].columns),
        torn=tuple(f"{name}.csv" for name, table in tables.items() if table.torn),
    )


def _spec_values(path: Path) -> dict[str, Scalar]:
    """Return a run's complete spec by dotted key, with the keys that came later.

    Not as a `Spec`: runs of other versions of this program, with other keys, can be compared too.
    """
    values = spec_values(path)
    missing = [key for key in _NEEDED if key not in values]
    if missing:
        raise DamagedError(f"{path}: no {', '.join(missing)}; expected the complete spec of a run")
    for key, kind in _NEEDED.items():
        check_types(path, values[key], kind, key=key)
    return {**values, **with_added_keys(values)}


def _evaluations(table: pl.DataFrame, protocols: Mapping[str, Protocol]) -> tuple[Evaluation, ...]:
    columns = (table[name].to_list() for name in EVALUATIONS)
    return tuple(
        Evaluation(
            env_frames=frames,
            kind=printable(kind),
            episodes=episodes,
            mean_return=mean_return,
            frame_caps=frame_caps,
            max_episode_frames=protocols[digest].max_episode_frames if digest in protocols else None,
            protocol_digest=printable(digest),
        )
        for frames, kind, episodes, mean_return, frame_caps, digest in zip(*columns, strict=True)
    )


def _curve(table: pl.DataFrame) -> Curve:
    frames, values = table.columns
    return Curve(frames=table[frames].to_numpy(), values=table[values].to_numpy())


def _versions(provenance: Provenance) -> str:
    versions = provenance.versions
    commit = provenance.git.commit if provenance.git else ""
    names = ("atari_dqn", "torch", "ale-py")
    told = [f"{name} {versions[name]}" for name in names if versions.get(name)]
    return printable(", ".join([*told, f"commit {commit[:9]}"] if commit else told))
