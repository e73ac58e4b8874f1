"""The record of a sweep: its members with their complete specs, and the device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import msgspec

from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import write_json_atomically
from atari_dqn.files.documents import check_types, read_json, with_infinity
from atari_dqn.spec.digest import values_digest
from atari_dqn.spec.history import without_ineffective
from atari_dqn.spec.keys import Scalar

SCHEMA_VERSION = 1
_MOST_BYTES = 2**26
MOST_NAME_CHARACTERS = 200
_Name = Annotated[
    str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.,=+-]*$", max_length=MOST_NAME_CHARACTERS)
]


@dataclass(frozen=True, kw_only=True)
class Member:
    """One run of a sweep."""

    name: str
    """The name of its run directory."""
    label: str
    """Method and case: all members of a label differ in game and seed alone."""
    game: str
    seed: int
    digest: str
    """The digest of its spec."""
    values: Mapping[str, Scalar]
    """The complete spec by dotted key; no key is `auto`."""

    @classmethod
    def of(cls, label: str, values: Mapping[str, Scalar]) -> Member:
        """Make the member of a label that has a complete spec."""
        game, seed = str(values["game"]), int(values["seed"])
        return cls(
            name=member_name(label, game, seed),
            label=label,
            game=game,
            seed=seed,
            digest=values_digest(values),
            values=values,
        )

    @property
    def total_frames(self) -> int:
        """The budget in emulator frames."""
        return int(self.values["training.total_frames"])


def member_name(label: str, game: str, seed: int) -> str:
    """Return the name of the run of a label on a game with a seed."""
    return f"{label}_{game}_seed{seed}"


@dataclass(frozen=True, kw_only=True)
class SweepRecord:
    """What a sweep consists of, as decided when each of its members was first planned."""

    name: str
    device: str
    """`cpu` or `cuda`: the type of device of every run."""
    threads: int
    """Threads of torch in every run; another number changes the rounding."""
    members: tuple[Member, ...]
    former: tuple[Member, ...] = field(default=())
    """Members that began, but are not in the sweep file any more."""

    def places(self) -> dict[str, int]:
        """Number the names of all members in the order of comparisons: label by label, whichever are missing.

        The order of labels, and of the members of each, is that of the record, the former ones last.
        """
        every = (*self.members, *self.former)
        labels = list(dict.fromkeys(member.label for member in every))
        compared = sorted(every, key=lambda member: labels.index(member.label))
        return {member.name: place for place, member in enumerate(compared)}


class _Row(msgspec.Struct):
    name: _Name
    variant: str
    label: str
    game: str
    seed: Annotated[int, msgspec.Meta(ge=0)]
    digest: str
    belongs: bool


class _Document(msgspec.Struct):
    """Types of record.json. Earlier versions also wrote `auto`, one value of such a key for all members."""

    schema_version: int
    name: str
    device: str
    threads: Annotated[int, msgspec.Meta(ge=1)]
    variants: dict[str, dict[str, bool | int | float | str]]
    members: list[_Row]


def read_record(path: Path) -> SweepRecord:
    """Read a record; raise `DamagedError`, with a remedy, if it is missing or invalid."""
    try:
        return _read(path)
    except DamagedError as error:
        raise DamagedError(
            f"{error}; restore the file, or begin the sweep in another folder: `dqn resume` continues single "
            "runs of this one, and `dqn compare` compares them"
        ) from error


def _read(path: Path) -> SweepRecord:
    data: dict[str, Any] = read_json(path, most_bytes=_MOST_BYTES)
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != SCHEMA_VERSION:
        raise DamagedError(f"{path}: schema version {version}; this program reads {SCHEMA_VERSION}")
    check_types(path, data, _Document)
    document = msgspec.convert(data, _Document)
    missing = [row.name for row in document.members if row.variant not in document.variants]
    if missing:
        raise DamagedError(f"{path}: members.{missing[0]}: the spec of its variant is missing")
    return SweepRecord(
        name=document.name,
        device=document.device,
        threads=document.threads,
        members=tuple(_members(document, belongs=True)),
        former=tuple(_members(document, belongs=False)),
    )


def write_record(path: Path, record: SweepRecord) -> None:
    """Write a record atomically. Values that members share are written once."""
    variants: dict[str, dict[str, Scalar]] = {}
    rows = []
    for member, belongs in [
        *((each, True) for each in record.members),
        *((each, False) for each in record.former),
    ]:
        values = {key: value for key, value in member.values.items() if key not in ("game", "seed")}
        row = {name: getattr(member, name) for name in ("name", "label", "game", "seed", "digest")}
        rows.append({**row, "variant": _variant(variants, member.label, values), "belongs": belongs})
    head = {name: getattr(record, name) for name in ("name", "device", "threads")}
    write_json_atomically(
        path, {"schema_version": SCHEMA_VERSION, **head, "variants": variants, "members": rows}
    )


def _variant(variants: dict[str, dict[str, Scalar]], label: str, values: dict[str, Scalar]) -> str:
    """Return the name under which the values of a variant are stored, and store them if they are new."""
    name, number = label, 1
    while variants.setdefault(name, values) != values:
        number += 1
        name = f"{label}~{number}"
    return name


def _members(document: _Document, *, belongs: bool) -> Iterator[Member]:
    for row in document.members:
        if row.belongs == belongs:
            values = {key: with_infinity(value) for key, value in document.variants[row.variant].items()}
            yield Member(
                name=row.name,
                label=row.label,
                game=row.game,
                seed=row.seed,
                digest=row.digest,
                values={**without_ineffective(values), "game": row.game, "seed": row.seed},
            )
