"""Groups: runs that differ in their seed alone; and methods: groups that differ in their game alone."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from atari_dqn.comparison.load import Run
from atari_dqn.reference.agents import agent_name
from atari_dqn.spec.digest import FREE_SECTIONS
from atari_dqn.spec.keys import Scalar
from atari_dqn.spec.schema import Toggles

_SHOWN_DIFFERENCES = 3


@dataclass(frozen=True, kw_only=True)
class Method:
    """Everything of a spec but its seed and game, with a name that is short and its own."""

    label: str
    track_label: str
    agent: str
    """As the literature calls it."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """The seeds of one method on one game."""

    method: Method
    game: str
    runs: tuple[Run, ...]
    """By seed, each once."""
    notes: tuple[str, ...]
    """What a reader must know of how the group came about."""


def group_runs(runs: Iterable[Run]) -> list[Group]:
    """Return the groups of runs, methods and games in the order in which they were given."""
    by_method: dict[frozenset[tuple[str, Scalar]], dict[str, list[Run]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for run in runs:
        by_method[_identity(run.values)][run.game].append(run)
    labels = _labels({identity: next(iter(games.values()))[0] for identity, games in by_method.items()})
    return [
        _group(_method(labels[identity], members[0]), game, members)
        for identity, games in by_method.items()
        for game, members in games.items()
    ]


def _identity(values: Mapping[str, Scalar]) -> frozenset[tuple[str, Scalar]]:
    """Return what makes a method: every key that can change results, but seed and game."""
    return frozenset(
        (key, value)
        for key, value in values.items()
        if key not in ("seed", "game") and key.partition(".")[0] not in FREE_SECTIONS
    )


def _method(label: str, run: Run) -> Method:
    toggles: dict[str, Any] = {field.name: run.values[f"toggles.{field.name}"] for field in fields(Toggles)}
    return Method(label=label, track_label=run.track_label, agent=agent_name(Toggles(**toggles)))


def _group(method: Method, game: str, members: Sequence[Run]) -> Group:
    """Return a group with each seed once: of two runs of one seed, the one that went further."""
    notes = []
    kept: dict[int, Run] = {}
    for run in sorted(members, key=lambda run: (run.seed, -run.reached_frames)):
        if run.seed in kept:
            notes.append(
                f"seed {run.seed} was run twice: {kept[run.seed].path} counts, {run.path} is left out"
            )
        else:
            kept[run.seed] = run
    notes += [
        f"seed {run.seed}: the last row of {name} is cut off and left out"
        for run in kept.values()
        for name in run.torn
    ]
    versions = {run.versions for run in kept.values()}
    if len(versions) > 1:
        notes.append(f"its runs were made by different versions: {'; '.join(sorted(versions))}")
    return Group(method=method, game=game, runs=tuple(kept.values()), notes=tuple(notes))


def _labels(
    first_runs: Mapping[frozenset[tuple[str, Scalar]], Run],
) -> dict[frozenset[tuple[str, Scalar]], str]:
    """Return a label for each method: its name without the game, and what tells it from a namesake."""
    namesakes: dict[str, list[frozenset[tuple[str, Scalar]]]] = defaultdict(list)
    for identity, run in first_runs.items():
        namesakes[_base_label(run)].append(identity)
    labels = {}
    for base, identities in namesakes.items():
        for place, identity in enumerate(identities):
            others = [other for other in identities if other != identity]
            labels[identity] = base if not others else f"{base} {_distinction(identity, others) or place + 1}"
    return labels


def _base_label(run: Run) -> str:
    without_game = re.sub(rf"(^|_){re.escape(run.game)}(_|$)", "_", run.name)
    return without_game.strip("_-") or f"track {run.track_label}"


def _distinction(
    identity: frozenset[tuple[str, Scalar]], others: Sequence[frozenset[tuple[str, Scalar]]]
) -> str:
    """Return the keys and values that not every namesake shares."""
    shared = identity.intersection(*others)
    own = sorted(identity - shared)
    told = [f"{key.rpartition('.')[2]}={_shown(value)}" for key, value in own[:_SHOWN_DIFFERENCES]]
    return ", ".join([*told, f"and {len(own) - len(told)} keys more"] if len(own) > len(told) else told)


def _shown(value: Scalar) -> str:
    return (
        str(value).lower()
        if isinstance(value, bool)
        else f"{value:,}"
        if isinstance(value, int)
        else str(value)
    )
