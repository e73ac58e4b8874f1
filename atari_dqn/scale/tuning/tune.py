"""A tune: what is searched, by which score, and how far. Plain values, which its folder records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from atari_dqn.scale.tuning.space import Dimension
from atari_dqn.spec.keys import Scalar

Direction = Literal["maximize", "minimize"]
Statistic = Literal["mean", "iqm"]


@dataclass(frozen=True, kw_only=True)
class Objective:
    """The number that a trial is rated by."""

    score: str
    """A name of `scores.SCORES`."""
    statistic: Statistic
    """Over the seeds and games of a trial."""
    at_frames: int
    """The emulator frame at which each run is evaluated, and after which it is stopped."""
    direction: Direction


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """How values are suggested: by the tree-structured Parzen estimator, after some trials at random."""

    seed: int
    random_trials: int
    trials_at_once: int
    """With one, the trials depend on the seed alone; with more, also on which of them ends first."""


@dataclass(frozen=True, kw_only=True)
class Pruning:
    """When a trial that is worse than the median of earlier ones ends early."""

    startup_trials: int
    """Complete trials before the first one is pruned."""
    warmup_frames: int
    """Evaluations before this frame never prune."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """When no further trial begins; at least one of both is set."""

    trials: int | None
    hours: float | None
    """Time for which `dqn tune` has worked, over all its commands."""


@dataclass(frozen=True, kw_only=True)
class Tune:
    """A valid tune file."""

    name: str
    spec: str
    """The file of the base spec, for display; its keys are in `base`."""
    base: Mapping[str, Scalar]
    """The keys of the base spec and of [set], as they were written, without those of the space."""
    games: tuple[str, ...]
    seeds: tuple[int, ...]
    threads: int
    space: tuple[Dimension, ...]
    """In an order in which conditions refer to earlier dimensions."""
    objective: Objective
    evaluation_frames: tuple[int, ...]
    """The emulator frames of the full evaluations up to that of the objective."""
    pruning: Pruning | None
    sampler: Sampler
    budget: Budget

    @property
    def keys(self) -> list[str]:
        """The keys that are searched."""
        return [dimension.key for dimension in self.space]


def to_plain(tune: Tune) -> dict[str, Any]:
    """Convert a tune to plain values for JSON."""
    plain: dict[str, Any] = msgspec.to_builtins(tune)
    return plain
