"""What a run is: its specification and the record of where it came from, checked before use."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files import read_regular
from atari_dqn.following.boundary import worded
from atari_dqn.printable import printable
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


class _Track(msgspec.Struct):
    label: str | None = None
    deviations: list[str] = []


class _Provenance(msgspec.Struct):
    """The parts of `provenance.json` that views and comparisons read."""

    name: str | None = None
    track: _Track | None = None
    spec: dict[str, str] | None = None
    git: dict[str, Any] | None = None
    versions: dict[str, str | None] | None = None
    protocols: dict[str, dict[str, Any]] | None = None


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
    table = _spec(run / "spec.toml")
    values = dict(_scalars(table, run / "spec.toml"))
    with _checked(run / "spec.toml", "is not the complete spec of a run"):
        spec = msgspec.convert(table, _Spec)
    track = _provenance(run / "provenance.json").track or _Track()
    return Identity(
        game=printable(spec.game),
        seed=spec.seed,
        track=printable(spec.track),
        track_label=printable(track.label or spec.track),
        deviations=tuple(map(printable, track.deviations)),
        total_frames=spec.training.total_frames,
        values=values,
    )


def _spec(path: Path) -> dict[str, Any]:
    data = _bytes(path)
    with _checked(path, "is not the complete spec of a run"):
        return tomllib.loads(data.decode())


def _provenance(path: Path) -> _Provenance:
    data = _bytes(path)
    with _checked(path, "is not a record of provenance"):
        return msgspec.json.decode(data, type=_Provenance)


def _bytes(path: Path) -> bytes:
    try:
        return read_regular(path)
    except OSError as error:
        kind = UserError if isinstance(error, FileNotFoundError | PermissionError) else DamagedError
        raise kind(f"{path}: {(error.strerror or str(error)).lower()}") from error


@contextmanager
def _checked(path: Path, problem: str) -> Iterator[None]:
    """Turn what a decoder raises for damaged contents into the `DamagedError` that names the file."""
    try:
        yield
    except RecursionError as error:
        raise DamagedError(f"{path}: {problem} (it is nested too deeply)") from error
    except ValueError as error:  # of tomllib, of the decoding of UTF-8, of msgspec
        raise DamagedError(f"{path}: {problem} ({worded(error)})") from error


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
