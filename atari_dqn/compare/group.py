"""Groups: runs that differ in their seed alone; and methods: groups that differ in their game alone."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Any

from atari_dqn.compare.load import Run
from atari_dqn.compare.reference.agents import agent_name
from atari_dqn.formatting import printable, setting, shortened
from atari_dqn.spec.digest import cannot_change_results
from atari_dqn.spec.keys import Scalar
from atari_dqn.spec.loader import AUTO
from atari_dqn.spec.schema import Toggles

Identity = frozenset[tuple[str, Scalar]]
"""Keys and values that make a method: those that can change results, but seed and game."""

_FEW_KEYS = 3
"""Where so many tell all methods apart, they are in every method's name, with their values."""
_SECTIONS = (
    "toggles", "network", "distribution", "learner", "optimizer", "exploration", "replay", "env", "training",
)  # fmt: skip
"""What a difference is looked for in first."""


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

    @property
    def deviations(self) -> tuple[str, ...]:
        """Keys in which the run that deviates most from its track differs from it."""
        return max((run.deviations for run in self.runs), key=len)


def group_runs(runs: Iterable[Run]) -> list[Group]:
    """Return the groups of runs, methods and games in the order in which they were given."""
    by_method: dict[Identity, dict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for identity, run in _identified(list(runs)):
        by_method[identity][run.game].append(run)
    labels = _labels({identity: next(iter(games.values()))[0] for identity, games in by_method.items()})
    methods = {
        identity: _method(labels[identity], list(chain.from_iterable(games.values())))
        for identity, games in by_method.items()
    }
    return [
        _group(methods[identity], game, members)
        for identity, games in by_method.items()
        for game, members in games.items()
    ]


def _identified(runs: Sequence[Run]) -> Iterator[tuple[Identity, Run]]:
    """Yield each run with what makes its method.

    Keys that were `auto` count with the values that the machine chose, unless it chose different ones in runs
    that agree in all else: then they count as `auto`.
    """
    chosen: dict[Identity, set[Identity]] = defaultdict(set)
    for run in runs:
        chosen[_identity(run, auto=True)].add(_identity(run, auto=False))
    for run in runs:
        as_auto = _identity(run, auto=True)
        yield as_auto if len(chosen[as_auto]) > 1 else _identity(run, auto=False), run


def _identity(run: Run, *, auto: bool) -> Identity:
    """Return every key that can change results, but seed and game; `auto`: chosen keys by that word."""
    return frozenset(
        (key, AUTO if auto and key in run.auto_keys else value)
        for key, value in run.values.items()
        if key not in ("seed", "game") and not cannot_change_results(key)
    )


def _method(label: str, runs: Sequence[Run]) -> Method:
    """Return the method of some runs, with the mark of a track that one of them deviates from."""
    return Method(label=label, track_label=max(run.track_label for run in runs), agent=_agent(runs[0]))


def _agent(run: Run) -> str:
    toggles: dict[str, Any] = {field.name: run.values[f"toggles.{field.name}"] for field in fields(Toggles)}
    return agent_name(Toggles(**toggles))


def _group(method: Method, game: str, members: Sequence[Run]) -> Group:
    """Return a group with each seed once: of two runs of one seed, the one that went further."""
    notes = []
    kept: dict[int, Run] = {}
    for run in sorted(members, key=lambda run: (run.seed, -run.reached_frames)):
        if run.seed in kept:
            notes.append(
                f"seed {run.seed} was run twice: {printable(str(kept[run.seed].path))} counts, "
                f"{printable(str(run.path))} is left out"
            )
        else:
            kept[run.seed] = run
    notes += [
        f"seed {run.seed}: the last row of {name} is cut off and left out"
        for run in kept.values()
        for name in run.torn
    ]
    notes += _auto_notes(list(kept.values()))
    versions = {run.versions for run in kept.values()}
    if len(versions) > 1:
        notes.append(f"its runs were made by different versions: {'; '.join(sorted(versions))}")
    return Group(method=method, game=game, runs=tuple(kept.values()), notes=tuple(notes))


def _auto_notes(runs: Sequence[Run]) -> Iterator[str]:
    """Yield for each key that was `auto` and differs between the runs which seeds have which value."""
    for key in sorted({key for run in runs for key in run.auto_keys}):
        seeds: dict[Scalar, list[str]] = defaultdict(list)
        for run in runs:
            seeds[run.values[key]].append(str(run.seed))
        if len(seeds) > 1:
            told = "; ".join(
                f"{setting(value)} for seed{'s' * (len(of) > 1)} {', '.join(of)}"
                for value, of in seeds.items()
            )
            yield f"{key} was {AUTO}, and the machines chose different values: {told}"


def _labels(first_runs: Mapping[Identity, Run]) -> dict[Identity, str]:
    """Return a label for each method: its name without the game, and what tells it from a namesake."""
    namesakes: dict[str, list[Identity]] = defaultdict(list)
    for identity, run in first_runs.items():
        namesakes[_base_label(run)].append(identity)
    labels: dict[Identity, str] = {}
    for base, identities in namesakes.items():
        told = _told_apart([dict(identity) for identity in identities])
        labels |= {
            identity: f"{base} {words}".strip() for identity, words in zip(identities, told, strict=True)
        }
    return labels


def _base_label(run: Run) -> str:
    """Return the name of a run's spec without the game; the agent's where it has no other."""
    without_game = re.sub(rf"(^|_){re.escape(run.game)}(_|$)", "_", run.name)
    return without_game.strip("_-") or _agent(run)


def _told_apart(methods: Sequence[Mapping[str, Scalar]]) -> list[str]:
    """Return for each of several methods the keys and values that tell it from every other.

    Where it takes many keys, a method is told by those in which it is not as most methods are.
    """
    differing = _by_importance({key for each in methods for key in each if len(_kinds(methods, [key])) > 1})
    telling: list[str] = []
    rest = list(differing)
    while rest and len(_kinds(methods, telling)) < len(methods):
        best = max(rest, key=lambda key: len(_kinds(methods, [*telling, key])))
        telling.append(best)
        rest.remove(best)
    leaves = Counter(_leaf(key) for key in set().union(*methods))
    names = {key: _leaf(key) if leaves[_leaf(key)] == 1 else key for key in differing}
    if len(telling) <= _FEW_KEYS:
        # what only some have, as what a toggle brings along, follows from another key: it tells nothing more
        everywhere = [key for key in rest if all(key in each for each in methods)]
        first = telling + everywhere[: _FEW_KEYS - len(telling)]
        return [_told(own, names, first, [key for key in differing if key not in first]) for own in methods]
    usual = {key: Counter(each.get(key) for each in methods).most_common(1)[0][0] for key in differing}
    unusual = [{key for key in differing if own.get(key) != usual[key]} for own in methods]
    return [
        _told_by_unusual(own, names, telling, [key for key in differing if key in its])
        for own, its in zip(methods, unusual, strict=True)
    ]


def _told_by_unusual(
    own: Mapping[str, Scalar], names: Mapping[str, str], telling: Sequence[str], its: Sequence[str]
) -> str:
    """Return one method's unusual values: of keys that tell others apart, or else of its first."""
    if not its:
        return "as most"
    first = [key for key in telling if key in its] or its[:1]
    return _told(own, names, first, [key for key in its if key not in first])


def _told(
    own: Mapping[str, Scalar], names: Mapping[str, str], first: Sequence[str], others: Sequence[str]
) -> str:
    """Return the values of the first keys, and how many others there are."""
    words = [f"{names[key]}={setting(own[key])}" if key in own else f"without {names[key]}" for key in first]
    return shortened([*words, *others], len(words))


def _kinds(methods: Sequence[Mapping[str, Scalar]], keys: Sequence[str]) -> set[tuple[Scalar | None, ...]]:
    """Return the different values that methods have of some keys; None for a key that one does not know."""
    return {tuple(each.get(key) for key in keys) for each in methods}


def _by_importance(keys: Iterable[str]) -> list[str]:
    """Return keys in the order in which a reader looks for differences."""
    places = {section: place for place, section in enumerate(_SECTIONS)}
    return sorted(keys, key=lambda key: (places.get(key.partition(".")[0], len(places)), key))


def _leaf(key: str) -> str:
    return key.rpartition(".")[2]
