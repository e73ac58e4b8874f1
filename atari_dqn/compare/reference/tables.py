"""The tables: studies, their figures, and what people and chance score. Read once, a game at a time."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any, Literal

Measure = Literal["evaluation", "training"]
"""What a figure is a mean of: returns of evaluation games, or of the games trained on."""

DEFAULT_HUMAN_TABLE = "atari57"
"""The table that most papers since 2016 normalise by: 57 games, 30 minutes each."""
HUMAN_TABLES = (DEFAULT_HUMAN_TABLE, "nature2015")
"""The tables in use; the second is of Mnih et al. (2015): 49 games, 5 minutes each."""


@dataclass(frozen=True, kw_only=True)
class Study:
    """One source of figures, with what it says of its protocol."""

    name: str
    title: str
    measure: Measure
    weights: Literal["current", "best"]
    """Of the moment, or the best of the run: a maximum, biased upwards."""
    source: str
    licence: str
    notes: tuple[str, ...]
    """What to beware of."""
    protocol: Mapping[str, Any]
    """The fields of `Protocol` that the source states."""
    commit: str = ""
    """Of the repository that the figures were read from; empty for a paper."""
    network: str = "nature"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One agent's score on one game after so many frames, over the seeds of a study."""

    study: str
    agent: str
    game: str
    env_frames: int
    mean: float
    lowest: float | None
    """Over seeds; None where one number was printed."""
    highest: float | None
    n: int | None
    """Seeds; None where the source does not say."""


@dataclass(frozen=True, kw_only=True)
class HumanRandom:
    """What a person and random actions score on a game, by one of the tables in use."""

    table: str
    random: float
    human: float

    def normalised(self, score: float) -> float:
        """Return a score as a share of the way from random (0) to human (1)."""
        return (score - self.random) / (self.human - self.random)


@cache
def studies() -> dict[str, Study]:
    """Return every study by its name, in the order of preference that sources.toml has."""
    tables = tomllib.loads(_text("sources.toml"))
    return {
        name: Study(**{**table, "name": name, "notes": tuple(table["notes"])})
        for name, table in tables.items()
    }


@cache
def curves(game: str) -> dict[tuple[str, str], tuple[Figure, ...]]:
    """Return every published figure of a game, by study and agent, in the order of frames."""
    found: dict[tuple[str, str], list[Figure]] = {}
    for row in _rows("scores.csv", about=game):
        if row["game"] == game:
            found.setdefault((row["study"], row["agent"]), []).append(_figure(row))
    return {key: tuple(points) for key, points in found.items()}


def figures(game: str) -> Iterator[Figure]:
    """Yield every published figure of a game."""
    return chain.from_iterable(curves(game).values())


@cache
def human_random(game: str, table: str = DEFAULT_HUMAN_TABLE) -> HumanRandom | None:
    """Return what a person and chance score on a game; None for a game that the table does not have."""
    for row in _rows("human_random.csv", about=game):
        if row["table"] == table and row["game"] == game:
            return HumanRandom(table=table, random=float(row["random"]), human=float(row["human"]))
    return None


def _figure(row: Mapping[str, str]) -> Figure:
    return Figure(
        study=row["study"],
        agent=row["agent"],
        game=row["game"],
        env_frames=int(row["env_frames"]),
        mean=float(row["mean"]),
        lowest=float(row["lowest"]) if row["lowest"] else None,
        highest=float(row["highest"]) if row["highest"] else None,
        n=int(row["n"]) if row["n"] else None,
    )


def _rows(name: str, *, about: str) -> Iterator[dict[str, str]]:
    """Return the rows of a table that hold this text, and perhaps others: most are never parsed."""
    header, *lines = _text(name).splitlines()
    return csv.DictReader([header, *(line for line in lines if f",{about}," in line)])


def _text(name: str) -> str:
    return (files("atari_dqn.compare.reference") / name).read_text(encoding="utf-8")
