"""Load the runs of a comparison from the files of their directories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from msgspec import structs
from numpy.typing import NDArray

from atari_dqn.compare.reference.caps import stands_for_games
from atari_dqn.compare.reference.studies import HumanRandom
from atari_dqn.compare.run_tables import (
    EVALUATIONS,
    TIMES,
    TRAINING_GAMES,
    TRAINING_RETURNS,
    Table,
    read_tables,
)
from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import exists, is_file
from atari_dqn.files.documents import check_types, checked
from atari_dqn.formatting import printable
from atari_dqn.run.archive.opening import opened_run
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.logged_events import current_budget, last_ending
from atari_dqn.run.provenance import Provenance
from atari_dqn.run.recorded_protocols import recorded_protocols
from atari_dqn.spec.digest import cannot_change_results
from atari_dqn.spec.game_name import game_name
from atari_dqn.spec.history import with_added_keys
from atari_dqn.spec.iteration import iteration_frames
from atari_dqn.spec.keys import AUTO_KEYS, KEYS, Scalar
from atari_dqn.spec.protocol import Protocol
from atari_dqn.spec.recorded import spec_values

_TABLES = {"eval_log": EVALUATIONS, "update_log": TRAINING_RETURNS, "throughput_log": TIMES}
_GAMES = "train_log"
_NEEDED: Mapping[str, type] = {
    "track": str, "game": str, "seed": int, "toggles.double": bool, "toggles.dueling": bool,
    "toggles.prioritized": bool, "toggles.n_step": int, "exploration.epsilon_end": float,
    "exploration.kind": str, "env.flicker_probability": float, "env.max_episode_frames": int,
    "env.num_envs": int, "env.frame_skip": int, "env.stack_frames": int, "network.kind": str,
    "training.total_frames": int, "evaluation.light_period_frames": int, "replay.prefill_steps": int,
    "exploration.epsilon_decay_frames": int,
}  # fmt: skip

_MOST_TABLE_BYTES = 2**28
"""Far more than the table of a run of 200 million frames."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A value over emulator frames. i64[T], f64[T]; frames never decrease."""

    frames: NDArray[np.int64]
    values: NDArray[np.float64]

    def at(self, env_frames: int) -> float:
        """Return the last value at or before a frame; NaN before the first value."""
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
    """NaN if the cell is empty."""
    frame_caps: int
    """Number of episodes that the frame cap truncated."""
    max_episode_frames: int | None
    """The frame cap; None if provenance.json does not contain the protocol."""
    protocol_digest: str

    def is_covered_by(self, human: HumanRandom) -> bool:
        """Return whether the score may be normalised by a human score."""
        return human.covers(self.frame_caps, self.max_episode_frames)

    @property
    def comparable(self) -> bool:
        """Whether no game was truncated, or only at a frame cap that published scores have too."""
        return stands_for_games(self.frame_caps, self.max_episode_frames)


@dataclass(frozen=True, kw_only=True)
class Run:
    """The spec of a run and its measurements."""

    path: Path
    name: str
    values: dict[str, Scalar]
    """The complete spec, by dotted key."""
    auto_keys: frozenset[str]
    """Keys that can change results, were `auto`, and were resolved for the machine when the run started."""
    track_label: str
    """The track, with a star if the run deviates from it."""
    deviations: tuple[str, ...]
    versions: Mapping[str, str]
    """The software that ran it, and the commit; runs of other versions may differ by more than their seed."""
    protocols: dict[str, Protocol]
    """Evaluation protocols by fingerprint."""
    evaluations: tuple[Evaluation, ...]
    """Sorted by frames."""
    training_returns: Curve
    """Rolling mean of the returns of training games."""
    training_games: Curve | None
    """The return of each training game; None for an archive, which has no table of them."""
    elapsed_seconds: Curve
    logged_budget_frames: int | None
    """The budget in emulator frames that its last resume recorded; None without a resume."""
    ending: str
    """How it ended before its final evaluation, a value of `ENDINGS`; empty if the log does not say so."""
    torn: tuple[str, ...]
    """Tables whose last row is incomplete; that row is left out."""

    @property
    def game(self) -> str:
        """The game, an ale-py ROM id. If frames flicker it is another game, which no human score is for."""
        return game_name(self.values)

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.values["seed"])

    @property
    def finished(self) -> bool:
        """Whether the run has a final evaluation, at its present budget if it was resumed."""
        has_final = any(evaluation.kind == "final" for evaluation in self.evaluations)
        return has_final and self.final_frames >= (self.logged_budget_frames or 0)

    @property
    def final_frames(self) -> int:
        """Emulator frames at the last final evaluation; 0 without one."""
        return max((each.env_frames for each in self.evaluations if each.kind == "final"), default=0)

    @property
    def reached_frames(self) -> int:
        """Emulator frames at the last row of the tables."""
        timed = self.elapsed_seconds.frames
        return max(self.evaluated_frames, int(timed[-1]) if len(timed) else 0)

    @property
    def evaluated_frames(self) -> int:
        """Emulator frames at the last evaluation; 0 without one."""
        return self.evaluations[-1].env_frames if self.evaluations else 0

    @property
    def total_frames(self) -> int:
        """The budget in emulator frames: that of the spec, or a later one by `dqn resume --frames`."""
        return self.logged_budget_frames or int(self.values["training.total_frames"])

    @property
    def iteration_frames(self) -> int:
        """Emulator frames of an iteration; an evaluation is late by less than this."""
        return iteration_frames(self.values)

    @property
    def evaluation_period_frames(self) -> int:
        """Emulator frames between evaluations."""
        return int(self.values["evaluation.light_period_frames"])


def load_runs(paths: Sequence[Path]) -> list[Run]:
    """Read run directories and archives of runs.

    Raise `UserError` for a path that is neither, `DamagedError` for a missing or invalid file.
    """
    with ExitStack() as stack:
        directories = [_checked(stack.enter_context(opened_run(path))) for path in paths]
        tables = {
            name: read_tables([run.tables / f"{name}.csv" for run in directories], columns)
            for name, columns in _TABLES.items()
        }
        games = _training_games(directories)
        return [
            _run(path, run, {name: read[place] for name, read in tables.items()}, games.get(run.path))
            for place, (path, run) in enumerate(zip(paths, directories, strict=True))
        ]


def _training_games(directories: Sequence[RunDirectory]) -> dict[Path, Table]:
    """Read the tables of training games, which archives do not have, by run."""
    paths = {run.path: run.tables / f"{_GAMES}.csv" for run in directories}
    known = {run: path for run, path in paths.items() if exists(path)}
    return dict(zip(known, read_tables(list(known.values()), TRAINING_GAMES), strict=True))


def _checked(directory: RunDirectory) -> RunDirectory:
    """Check the tables of a run: reading a named pipe would block forever."""
    for name in (*_TABLES, _GAMES):
        _check_table_file(directory.tables / f"{name}.csv")
    return directory


def _check_table_file(path: Path) -> None:
    if exists(path) and not is_file(path):
        raise DamagedError(f"{path}: is not a regular file")
    if exists(path) and path.stat().st_size > _MOST_TABLE_BYTES:
        raise DamagedError(f"{path}: is larger than {_MOST_TABLE_BYTES:,} bytes")


def _run(path: Path, directory: RunDirectory, tables: Mapping[str, Table], games: Table | None) -> Run:
    provenance = checked(directory.provenance, directory.read_provenance(), Provenance)
    protocols = recorded_protocols(directory, tables["eval_log"].columns["protocol"].to_list())
    track = provenance.track
    values = _spec_values(directory.spec, provenance)
    return Run(
        path=path,
        name=printable(provenance.name or path.name),
        values=values,
        auto_keys=frozenset(
            key for key in AUTO_KEYS if key in provenance.auto and not cannot_change_results(key)
        ),
        track_label=printable(track.label) if track else "?",
        deviations=tuple(map(printable, track.deviations)) if track else (),
        versions=_versions(provenance),
        protocols={printable(digest): protocol for digest, protocol in protocols.items()},
        evaluations=_evaluations(tables["eval_log"].columns, protocols),
        training_returns=_curve(tables["update_log"].columns),
        training_games=None if games is None else _curve(games.columns),
        elapsed_seconds=_curve(tables["throughput_log"].columns),
        logged_budget_frames=current_budget(directory.events),
        ending=last_ending(directory.events),
        torn=tuple(f"{name}.csv" for name, table in tables.items() if table.torn),
    )


def _spec_values(path: Path, provenance: Provenance) -> dict[str, Scalar]:
    """Return the complete spec of a run by dotted key, with the keys that were added since.

    The result is not a `Spec`, so that runs of other versions, with other keys, can be compared too.
    """
    recorded = spec_values(path)
    values = {**recorded, **with_added_keys(recorded, structs.asdict(provenance))}
    needed = {key: kind for key, kind in _NEEDED.items() if KEYS[key].applies(values)}
    missing = [key for key in needed if key not in values]
    if missing:
        raise DamagedError(f"{path}: no {', '.join(missing)}; expected the complete spec of a run")
    for key, kind in needed.items():
        check_types(path, values[key], kind, key=key)
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


def _versions(provenance: Provenance) -> dict[str, str]:
    """Return the known versions by name."""
    found = {name: provenance.versions.get(name) for name in ("atari_dqn", "torch", "ale-py")}
    found["commit"] = provenance.git.commit[:9] if provenance.git else None
    return {name: printable(version) for name, version in found.items() if version}
