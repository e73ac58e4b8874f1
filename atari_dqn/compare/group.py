"""Group runs: a group differs in the seed alone, a method in seed and game alone."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from atari_dqn.compare.load import Run
from atari_dqn.compare.reference.agents import agent_name
from atari_dqn.formatting import printable, setting, shortened
from atari_dqn.spec.constraints import AUTO
from atari_dqn.spec.digest import cannot_change_results
from atari_dqn.spec.keys import Scalar

Identity = frozenset[tuple[str, Scalar]]
"""The keys and values that identify a method: all but seed, game, and those that change rounding at most."""

_ROUNDING = ("learner.threads", "learner.compile")
"""Keys that only change rounding: seeds that differ in them are one group."""
_FEW_KEYS = 3
"""Up to this many distinguishing keys are shown with their values in every label."""
_SECTIONS = (
    "toggles", "network", "distribution", "learner", "optimizer", "exploration", "replay", "env", "training",
)  # fmt: skip
"""The sections of a spec, in the order in which a reader looks for differences."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """A spec without its seed and game, under a short label that is unique in the comparison."""

    label: str
    track_label: str
    agent: str
    """The name of the agent in the literature."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """The seeds of one method on one game."""

    method: Method
    game: str
    runs: tuple[Run, ...]
    """One run for each seed, in the order of seeds."""
    notes: tuple[str, ...]
    """Remarks on how the group was formed, such as runs that were left out."""

    @property
    def deviations(self) -> tuple[str, ...]:
        """The deviations from the track of the run that has the most of them."""
        return max((run.deviations for run in self.runs), key=len)


def group_runs(runs: Iterable[Run]) -> list[Group]:
    """Group runs by method and game, in the order in which the runs are given."""
    by_method: dict[Identity, dict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    for identity, run in _identified(list(runs)):
        by_method[identity][run.game].append(run)
    of_method = {identity: list(chain.from_iterable(games.values())) for identity, games in by_method.items()}
    labels = _labels(of_method)
    methods = {identity: _method(labels[identity], members) for identity, members in of_method.items()}
    return [
        _group(methods[identity], game, members)
        for identity, games in by_method.items()
        for game, members in games.items()
    ]


def _identified(runs: Sequence[Run]) -> Iterator[tuple[Identity, Run]]:
    """Yield each run with the identity of its method.

    A key that was `auto` counts with its resolved value, unless runs that agree in everything else resolved
    it differently: then it counts as `auto`.
    """
    chosen: dict[Identity, set[Identity]] = defaultdict(set)
    for run in runs:
        chosen[_identity(run, auto=True)].add(_identity(run, auto=False))
    for run in runs:
        as_auto = _identity(run, auto=True)
        yield as_auto if len(chosen[as_auto]) > 1 else _identity(run, auto=False), run


def _identity(run: Run, *, auto: bool) -> Identity:
    """Return the identity of a run's method; `auto`: with `auto` in place of the resolved values."""
    return frozenset(
        (key, AUTO if auto and key in run.auto_keys else value)
        for key, value in run.values.items()
        if key not in ("seed", "game", *_ROUNDING) and not cannot_change_results(key)
    )


def other_differences(ours: Run, theirs: Run) -> list[str]:
    """List the keys, except toggles, seed and game, in which two runs differ.

    A key that only one of them has, such as one of a toggle's, follows from another. Values that machines
    chose do not count.
    """
    left, right = (dict(_identity(run, auto=True)) for run in (ours, theirs))
    differing = {key for key in left.keys() & right.keys() if left[key] != right[key]}
    return _by_importance(key for key in differing if not key.startswith("toggles."))


def _method(label: str, runs: Sequence[Run]) -> Method:
    """Return the method of some runs; its track is marked if one of them deviates from it."""
    track_label = max(run.track_label for run in runs)
    return Method(label=label, track_label=track_label, agent=agent_name(runs[0].values))


def _group(method: Method, game: str, members: Sequence[Run]) -> Group:
    """Return a group with one run for each seed, the first by `_order`."""
    notes = []
    kept: dict[int, Run] = {}
    for run in sorted(members, key=_order):
        if run.seed in kept:
            counts = kept[run.seed]
            is_copy = bool(run.evaluations) and run.evaluations == counts.evaluations
            notes.append(
                f"seed {run.seed} {'is there' if is_copy else 'was run'} twice: "
                f"{printable(str(counts.path))} counts, {printable(str(run.path))} is left out"
                f"{'; their evaluations are equal' if is_copy else ''}"
            )
        else:
            kept[run.seed] = run
    notes += [
        f"seed {run.seed}: the last row of {name} is cut off and left out"
        for run in kept.values()
        for name in run.torn
    ]
    notes += _machine_notes(list(kept.values()))
    notes += _version_notes([run.versions for run in kept.values()])
    return Group(method=method, game=game, runs=tuple(kept.values()), notes=tuple(notes))


def _order(run: Run) -> tuple[int, bool, int, int]:
    """Return where a run is sorted: by seed, finished runs first, then long ones, those of archives last."""
    games = 0 if run.training_games is None else len(run.training_games.frames)
    return run.seed, not run.finished, -run.reached_frames, -games


def _machine_notes(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a note for each key in which seeds differ because of their machines, with each value's seeds."""
    for key in sorted({*_ROUNDING, *(key for run in runs for key in run.auto_keys)}):
        seeds: dict[Scalar, list[str]] = defaultdict(list)
        for run in runs:
            seeds[run.values[key]].append(str(run.seed))
        if len(seeds) > 1:
            by_value = "; ".join(
                f"{setting(value)} for seed{'s' * (len(those) > 1)} {', '.join(those)}"
                for value, those in seeds.items()
            )
            was_auto = f"was {AUTO}, and the machines chose different values"
            yield f"{key} {'differs, and so does rounding' if key in _ROUNDING else was_auto}: {by_value}"


def _version_notes(versions: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield a note about the software of which runs had different versions, if there is any."""
    by_name = {
        name: sorted({each.get(name, "unknown") for each in versions})
        for name in dict.fromkeys(chain.from_iterable(versions))
    }
    differing = [f"{name} {' | '.join(found)}" for name, found in by_name.items() if len(found) > 1]
    if differing:
        yield f"runs were made by different versions ({', '.join(differing)})"


def _labels(methods: Mapping[Identity, Sequence[Run]]) -> dict[Identity, str]:
    """Return a label for each method: the name of its spec, and the keys that distinguish namesakes.

    Specs whose names differ in the game alone, as `pong_dqn` and `breakout_dqn`, are namesakes called `dqn`.
    """
    by_stem: dict[str, list[Identity]] = defaultdict(list)
    for identity, runs in methods.items():
        by_stem[_without_game(runs[0]) or agent_name(runs[0].values)].append(identity)
    namesakes: dict[str, list[Identity]] = defaultdict(list)
    for stem, identities in by_stem.items():
        runs = list(chain.from_iterable(methods[identity] for identity in identities))
        namesakes[_base_label(stem, runs)] += identities
    labels: dict[Identity, str] = {}
    for base, identities in namesakes.items():
        suffixes = _distinguishing([dict(identity) for identity in identities])
        labels |= {
            identity: f"{base} {words}".strip() for identity, words in zip(identities, suffixes, strict=True)
        }
    return labels


def _base_label(stem: str, runs: Sequence[Run]) -> str:
    """Return the name that all runs have; the stem if there are several, or if it is that of a game alone."""
    names = {run.name for run in runs}
    return runs[0].name if len(names) == 1 and _without_game(runs[0]) else stem


def _without_game(run: Run) -> str:
    """Return the name of a run's spec without the game; empty if nothing is left."""
    return re.sub(rf"(^|_){re.escape(str(run.values['game']))}(_|$)", "_", run.name).strip("_-")


def _distinguishing(methods: Sequence[Mapping[str, Scalar]]) -> list[str]:
    """Return for each method the keys and values that distinguish it from every other.

    If many keys are needed, a method is labelled by the keys in which it differs from most methods.
    """
    differing = _by_importance({key for each in methods for key in each if len(_kinds(methods, [key])) > 1})
    distinguishing: list[str] = []
    rest = list(differing)
    while rest and len(_kinds(methods, distinguishing)) < len(methods):
        best = max(rest, key=lambda key: len(_kinds(methods, [*distinguishing, key])))
        distinguishing.append(best)
        rest.remove(best)
    leaves = Counter(_leaf(key) for key in set().union(*methods))
    names = {key: _leaf(key) if leaves[_leaf(key)] == 1 else key for key in differing}
    if len(distinguishing) <= _FEW_KEYS:
        # a key that only some methods have, such as one of a toggle's, follows from another key
        everywhere = [key for key in rest if all(key in each for each in methods)]
        first = distinguishing + everywhere[: _FEW_KEYS - len(distinguishing)]
        return [_values(own, names, first, [key for key in differing if key not in first]) for own in methods]
    usual = {key: Counter(each.get(key) for each in methods).most_common(1)[0][0] for key in differing}
    unusual = [{key for key in differing if own.get(key) != usual[key]} for own in methods]
    return [
        _unusual_values(own, names, distinguishing, [key for key in differing if key in its])
        for own, its in zip(methods, unusual, strict=True)
    ]


def _unusual_values(
    own: Mapping[str, Scalar], names: Mapping[str, str], distinguishing: Sequence[str], its: Sequence[str]
) -> str:
    """Format a method's unusual values: of distinguishing keys, or else of its first unusual key."""
    if not its:
        return "as most"
    first = [key for key in distinguishing if key in its] or its[:1]
    return _values(own, names, first, [key for key in its if key not in first])


def _values(
    own: Mapping[str, Scalar], names: Mapping[str, str], first: Sequence[str], others: Sequence[str]
) -> str:
    """Format the values of the first keys, and the number of the others."""
    words = [f"{names[key]}={setting(own[key])}" if key in own else f"without {names[key]}" for key in first]
    return shortened([*words, *others], len(words))


def _kinds(methods: Sequence[Mapping[str, Scalar]], keys: Sequence[str]) -> set[tuple[Scalar | None, ...]]:
    """Return the distinct values of some keys among methods; None for a key that a method lacks."""
    return {tuple(each.get(key) for key in keys) for each in methods}


def _by_importance(keys: Iterable[str]) -> list[str]:
    """Sort keys in the order in which a reader looks for differences."""
    places = {section: place for place, section in enumerate(_SECTIONS)}
    return sorted(keys, key=lambda key: (places.get(key.partition(".")[0], len(places)), key))


def _leaf(key: str) -> str:
    return key.rpartition(".")[2]
