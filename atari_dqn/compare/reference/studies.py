"""Read the published studies, their figures, and the human and random scores; each game is read once."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Measure = Literal["evaluation", "training"]
"""The games over which a figure is averaged: evaluation games or training games."""

DEFAULT_HUMAN_TABLE = "atari57"
"""The table that most papers since 2016 normalise by: 57 games."""
HUMAN_CAPS_FRAMES = {DEFAULT_HUMAN_TABLE: 108_000, "nature2015": 18_000}
"""The tables with the most emulator frames of their games; the second is of Mnih et al. (2015), 49 games."""
HUMAN_TABLES = tuple(HUMAN_CAPS_FRAMES)


@dataclass(frozen=True, kw_only=True)
class Averaging:
    """How figures of a curve are averaged over frames."""

    iteration_frames: int = 0
    """Frames of training of which a point is the mean; 0 if it is a single evaluation."""
    from_frames: int
    """From here on a figure is the mean of several points."""
    within_frames: int
    """The largest distance of these points from its frames."""
    until_frames: int
    """The frames of the last point of the curve."""

    def window(self, env_frames: int) -> tuple[int, int] | None:
        """Return the frames over which a figure is averaged, from and to; None for a single evaluation."""
        begin, end = env_frames - self.iteration_frames, env_frames
        if env_frames >= self.from_frames:
            begin, end = begin - self.within_frames, min(end + self.within_frames, self.until_frames)
        return (begin, end) if begin < end else None


@dataclass(frozen=True, kw_only=True)
class Study:
    """One source of figures, with the protocol that it states."""

    name: str
    title: str
    measure: Measure
    weights: Literal["current", "best"]
    """`current`: the weights at that frame; `best`: the best of the run, a maximum that is biased upwards."""
    source: str
    licence: str
    notes: tuple[str, ...]
    """Caveats of the source."""
    protocol: Mapping[str, Any]
    """The fields of `Protocol` that the source states."""
    commit: str = ""
    """The commit of the repository that the figures were read from; empty for a paper."""
    averaging: Averaging | None = None
    """The frames over which each figure is averaged; None for figures of a single evaluation."""
    network: str = "nature"
    """The kind of the network, as in a spec; `nature` also for Dopamine's form of it."""
    agents: Mapping[str, str] = field(default_factory=dict)
    """The names that `agent_name` gives to agents that have other names in scores.csv."""

    def agent_name(self, agent: str) -> str:
        """Return the name that a spec of an agent of scores.csv has."""
        name = self.agents.get(agent, agent)
        return name if self.network == "nature" else f"{name}, {self.network}"


@dataclass(frozen=True, kw_only=True)
class Figure:
    """The score of one agent on one game after `env_frames`, over the seeds of a study."""

    study: str
    agent: str
    game: str
    env_frames: int
    mean: float
    lowest: float | None
    """The lowest seed; None if the source gives only one number."""
    highest: float | None
    n: int | None
    """Number of seeds; None if the source does not state it."""


@dataclass(frozen=True, kw_only=True)
class HumanRandom:
    """The human score and the score of random actions on a game, from one of `HUMAN_TABLES`."""

    table: str
    random: float
    human: float

    def covers(self, frame_caps: int, max_episode_frames: int | None) -> bool:
        """Return whether a score may be normalised by this one: if the frame cap cut games, only at its cap.

        `frame_caps`: number of games that the cap cut. `max_episode_frames`: the cap; None if not known.
        """
        return not frame_caps or max_episode_frames == self.cap_frames

    @property
    def cap_frames(self) -> int:
        """The most emulator frames of a game of the table."""
        return HUMAN_CAPS_FRAMES[self.table]

    def normalised(self, score: float) -> float:
        """Return the human-normalised score: 0 for random actions, 1 for the human score."""
        return (score - self.random) / (self.human - self.random)


@cache
def studies() -> dict[str, Study]:
    """Return every study by its name, in the order of sources.toml, which is that of choice."""
    tables = tomllib.loads(_text("sources.toml"))
    return {
        name: Study(**{**table, "name": name, "notes": tuple(table["notes"]), "averaging": _averaging(table)})
        for name, table in tables.items()
    }


@cache
def curves(game: str) -> dict[tuple[str, str], tuple[Figure, ...]]:
    """Return every published figure of a game by study and agent, sorted by frames."""
    found: dict[tuple[str, str], list[Figure]] = {}
    for row in _rows("scores.csv", about=game):
        if row["game"] == game:
            found.setdefault((row["study"], row["agent"]), []).append(_figure(row))
    return {key: tuple(points) for key, points in found.items()}


@cache
def human_random(game: str, table: str = DEFAULT_HUMAN_TABLE) -> HumanRandom | None:
    """Return the human and random scores of a game; None for a game that the table does not contain."""
    for row in _rows("human_random.csv", about=game):
        if row["table"] == table and row["game"] == game:
            return HumanRandom(table=table, random=float(row["random"]), human=float(row["human"]))
    return None


def _averaging(table: Mapping[str, Any]) -> Averaging | None:
    return Averaging(**table["averaging"]) if "averaging" in table else None


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
    """Yield at least the rows of a table that have a cell `about`; most other rows are never parsed."""
    header, *lines = _text(name).splitlines()
    return csv.DictReader([header, *(line for line in lines if f",{about}," in line)])


def _text(name: str) -> str:
    return (files("atari_dqn.compare.reference") / name).read_text(encoding="utf-8")
