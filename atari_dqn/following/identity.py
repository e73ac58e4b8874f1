"""What a run is: its specification and the record of where it came from, checked before use."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from atari_dqn.documents import check_types, read_run_file
from atari_dqn.errors import DamagedError
from atari_dqn.following.boundary import worded
from atari_dqn.printable import printable
from atari_dqn.run import RunDirectory
from atari_dqn.spec.keys import Scalar

_MOST = 2**53
"""Of a count: what every program that reads the files can hold."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What a run is, from its spec and provenance. All text is safe to show."""

    game: str
    seed: int
    track: str
    track_label: str
    """The track, with a star if the run deviates from it."""
    deviations: tuple[str, ...]
    total_frames: int
    values: Mapping[str, Scalar]
    """The complete spec, by dotted key."""


_Count = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]


class _Training(msgspec.Struct):
    total_frames: _Count


class _Spec(msgspec.Struct):
    """The keys of a spec without which nothing can be shown."""

    game: str
    seed: _Count
    track: str
    training: _Training


def identity_of(run: Path) -> Identity:
    """Return what a run is; `UserError` or `DamagedError` where its files do not say."""
    path = run / "spec.toml"
    table = _spec(path)
    values = dict(_scalars(table, path))
    check_types(path, table, _Spec)
    track = RunDirectory(run).read_provenance().get("track") or {}
    return Identity(
        game=printable(table["game"]),
        seed=table["seed"],
        track=printable(table["track"]),
        track_label=printable(track.get("label") or table["track"]),
        deviations=tuple(map(printable, track.get("deviations", ()))),
        total_frames=table["training"]["total_frames"],
        values=values,
    )


def _spec(path: Path) -> dict[str, Any]:
    data = read_run_file(path)
    try:
        return tomllib.loads(data.decode())
    except RecursionError as error:
        raise DamagedError(f"{path}: is not TOML: it is nested too deeply") from error
    except ValueError as error:  # of tomllib, and of the decoding of UTF-8
        raise DamagedError(f"{path}: is not TOML: {worded(error)}") from error


def _scalars(table: Mapping[str, Any], path: Path) -> Iterator[tuple[str, Scalar]]:
    """Yield a spec's entries by dotted key; `DamagedError` for one that is no plain value."""
    for name, value in table.items():
        entries = (
            {f"{name}.{key}": item for key, item in value.items()}
            if isinstance(value, dict)
            else {name: value}
        )
        for key, item in entries.items():
            if not isinstance(item, bool | int | float | str):
                raise DamagedError(f"{path}: {printable(key)} is no plain value ({type(item).__name__})")
            yield printable(key), printable(item) if isinstance(item, str) else item
