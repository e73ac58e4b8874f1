"""The runs of a comparison, from their directories' files alone."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from atari_dqn.comparison.tables import EVALUATIONS, TIMES, TRAINING_RETURNS, Table, read_tables
from atari_dqn.errors import DamagedError
from atari_dqn.files import exists, is_file
from atari_dqn.printable import printable
from atari_dqn.protocol import Protocol
from atari_dqn.reference.caps import stands_for_games
from atari_dqn.run import RunDirectory
from atari_dqn.spec.history import brought_up_to_date
from atari_dqn.spec.keys import Scalar
from atari_dqn.spec.loader import AUTO_KEYS

_TABLES = {"eval_log": EVALUATIONS, "update_log": TRAINING_RETURNS, "throughput_log": TIMES}
_NEEDED: Mapping[str, type] = {
    "track": str, "game": str, "seed": int, "toggles.double": bool, "toggles.dueling": bool,
    "toggles.prioritized": bool, "toggles.n_step": int, "exploration.epsilon_end": float,
    "env.max_episode_frames": int, "env.lanes": int, "env.frame_skip": int, "training.total_frames": int,
    "evaluation.light_period_frames": int,
}  # fmt: skip


class _Track(msgspec.Struct):
    label: str = "?"
    deviations: tuple[str, ...] = ()


class _Git(msgspec.Struct):
    commit: str | None = None


class _Provenance(msgspec.Struct):
    """What a comparison reads of a run's provenance, with its types."""

    name: str | None = None
    track: _Track | None = None
    versions: dict[str, str | None] | None = None
    git: _Git | None = None
    protocols: dict[str, Protocol] = {}
    auto: dict[str, str] = {}


_MOST_BYTES = 2**24
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
        return int(self.values["env.lanes"]) * int(self.values["env.frame_skip"])

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
    """Open a run of regular files of a run's size alone: a pipe would be waited for without end."""
    for name in ("spec.toml", "provenance.json"):
        _refuse_other_file(path / name, most_bytes=_MOST_BYTES)
    for name in _TABLES:
        _refuse_other_file(path / f"{name}.csv", most_bytes=_MOST_TABLE_BYTES)
    return RunDirectory.open(path)


def _refuse_other_file(path: Path, *, most_bytes: int) -> None:
    if exists(path) and not is_file(path):
        raise DamagedError(f"{path}: is no regular file")
    if exists(path) and path.stat().st_size > most_bytes:
        raise DamagedError(f"{path}: is larger than {most_bytes:,} bytes")


def _run(directory: RunDirectory, tables: Mapping[str, Table]) -> Run:
    provenance = _provenance(directory)
    track = provenance.track or _Track()
    values = _spec_values(directory.spec)
    return Run(
        path=directory.path,
        name=printable(provenance.name or directory.path.name),
        values=values,
        auto_keys=frozenset(provenance.auto) & set(AUTO_KEYS) & set(values),
        track_label=printable(track.label),
        deviations=tuple(map(printable, track.deviations)),
        versions=_versions(provenance),
        protocols={printable(digest): protocol for digest, protocol in provenance.protocols.items()},
        evaluations=_evaluations(tables["eval_log"].columns, provenance.protocols),
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
    values = _by_dotted_key(tables)
    missing = [key for key in _NEEDED if key not in values]
    if missing:
        raise DamagedError(f"{path}: no {', '.join(missing)}; expected the complete spec of a run")
    values = {printable(key): _scalar(path, key, value) for key, value in values.items()}
    return {**values, **brought_up_to_date(values)}


def _scalar(path: Path, key: str, value: Any) -> Scalar:
    try:
        found: Scalar = msgspec.convert(value, _NEEDED.get(key, Scalar))
    except msgspec.ValidationError as error:
        raise DamagedError(f"{path}: {printable(key)}: {error}") from error
    return printable(found) if isinstance(found, str) else found


def _by_dotted_key(tables: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in tables.items():
        if isinstance(value, dict):
            values |= {f"{name}.{key}": item for key, item in value.items()}
        else:
            values[name] = value
    return values


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


def _provenance(directory: RunDirectory) -> _Provenance:
    try:
        return msgspec.convert(directory.read_provenance(), _Provenance)
    except msgspec.ValidationError as error:
        raise DamagedError(f"{directory.provenance}: is not what a run records: {error}") from error


def _versions(provenance: _Provenance) -> str:
    versions = provenance.versions or {}
    commit = (provenance.git.commit if provenance.git else None) or ""
    names = ("atari_dqn", "torch", "ale-py")
    told = [f"{name} {versions[name]}" for name in names if versions.get(name)]
    return printable(", ".join([*told, f"commit {commit[:9]}"] if commit else told))
