"""Expand a sweep file to its members: complete specs, every fault of every one reported at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from atari_dqn.run.sweep.record import MOST_NAME_CHARACTERS, Member, member_name
from atari_dqn.scale.cases import Case
from atari_dqn.scale.sweep_file import Method, SweepFile, read_sweep
from atari_dqn.spec.digest import values_digest
from atari_dqn.spec.errors import Fault, SpecError
from atari_dqn.spec.games import GAME_CHECKS, TOY_GAMES, game_problem
from atari_dqn.spec.keys import Scalar, flatten
from atari_dqn.spec.loader import file_entries, resolve_entries
from atari_dqn.spec.parse import Entry

_ANY_ATARI_GAME = "pong"
_MOST_NAMED = 2
DIGEST_DIGITS = 8
"""Digits of its digest that are added to the name of a member whose name another one has."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A method in one case, without game and seed."""

    label: str
    values: Mapping[str, Scalar]
    """Its complete spec; keys may still be `auto`. The game and the seed are those of its base spec."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A valid sweep: its variants, and the games and seeds that each of them plays."""

    name: str
    path: Path
    threads: int
    variants: tuple[Variant, ...]
    games: tuple[str, ...] | None
    seeds: tuple[int, ...] | None

    def members(self) -> list[Member]:
        """Return the members in the order in which they run: each seed completes the table of all games."""
        found = [
            Member.of(variant.label, {**variant.values, "game": game, "seed": seed})
            for variant in self.variants
            for game in self.games or [str(variant.values["game"])]
            for seed in self.seeds or [int(variant.values["seed"])]
        ]
        places = {game: place for place, game in enumerate(self.games or ())}
        return sorted(found, key=lambda member: (member.seed, places.get(member.game, 0)))


def load_sweep(path: Path) -> Sweep:
    """Load a sweep file; `SpecError` has the faults of the file and of all of its members."""
    file, faults = read_sweep(path)
    variants: list[Variant] = []
    by_label: dict[Fault, list[str]] = {}
    for method, case in [(method, case) for method in file.methods for case in file.cases]:
        found, wrong = _variant(file, method, case)
        for fault in wrong:
            by_label.setdefault(fault, []).append(_label(method, case))
        if found is not None:
            variants.append(found)
    faults += named_faults(by_label, total=len(file.methods) * len(file.cases))
    sweep = Sweep(
        name=file.name,
        path=path,
        threads=file.threads,
        variants=tuple(variants),
        games=file.games,
        seeds=file.seeds,
    )
    if not faults:
        faults += [*_duplicates(file, variants), *_long_names(sweep)]
    if faults:
        raise SpecError(list(dict.fromkeys(faults)))
    return sweep


def _label(method: Method, case: Case) -> str:
    return "_".join(filter(None, [method.name, case.label]))


def _variant(file: SweepFile, method: Method, case: Case) -> tuple[Variant | None, list[Fault]]:
    """Resolve the spec of a method in a case, and check each game of the sweep with it."""
    try:
        base = file_entries(method.spec)
    except SpecError as error:
        return None, list(error.faults)
    written = [*base, *file.shared, *method.entries, *case.entries]
    kind = _env_kind(written)
    faults = list(_game_faults(file, kind))
    axes = _axes(file, kind)
    try:
        resolved = resolve_entries(method.spec, [*written, *axes])
    except SpecError as error:
        return None, [*error.faults, *faults]
    return Variant(label=_label(method, case), values=flatten(resolved.spec)), faults


def _axes(file: SweepFile, kind: str) -> list[Entry]:
    """Return a valid game and seed in place of those that the spec has, if the sweep has them as axes."""
    game = kind if kind in TOY_GAMES else _ANY_ATARI_GAME
    good = next((each for each in file.games or () if _problem(each, kind) is None), game)
    entries = [] if file.games is None else [Entry("game", good, str(file.path))]
    return entries if file.seeds is None else [*entries, Entry("seed", 1, str(file.path))]


def _env_kind(entries: Sequence[Entry]) -> str:
    kinds = [entry.value for entry in entries if entry.key == "env.kind"]
    return str(kinds[-1]) if kinds else "atari"


def _problem(game: str, kind: str) -> str | None:
    return game_problem(game, kind=kind) if kind in GAME_CHECKS else None


def _game_faults(file: SweepFile, kind: str) -> Iterator[Fault]:
    for game in file.games or ():
        if (problem := _problem(game, kind)) is not None:
            yield Fault(str(file.path), "game", problem)


def named_faults(by_label: Mapping[Fault, Sequence[str]], *, total: int) -> Iterator[Fault]:
    """Yield each fault once, with the labels that have it unless it is a fault of all `total` of them."""
    for fault, labels in by_label.items():
        unique = list(dict.fromkeys(labels))
        if len(labels) == total or total == 1:
            yield fault
            continue
        more = len(unique) - _MOST_NAMED
        names = ", ".join(unique[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        yield replace(fault, problem=f"{fault.problem} (in {names})")


def _long_names(sweep: Sweep) -> Iterator[Fault]:
    """Yield a fault if the longest name of a run, with the digest that it may get, is too long to record."""
    names = (
        member_name(
            variant.label,
            max(sweep.games or [str(variant.values["game"])], key=len),
            max(sweep.seeds or [int(variant.values["seed"])]),
        )
        for variant in sweep.variants
    )
    longest = max(names, key=len)
    most = MOST_NAME_CHARACTERS - len("_") - DIGEST_DIGITS
    if len(longest) > most:
        problem = f"the run {longest} has a name of {len(longest)} characters, expected at most {most}"
        yield Fault(str(sweep.path), "", f"{problem}; name methods, and [[cases]] in place of a grid")


def _duplicates(file: SweepFile, variants: Sequence[Variant]) -> Iterator[Fault]:
    """Yield a fault for two variants of the same name, or whose runs would have the same results."""
    for label, number in Counter(variant.label for variant in variants).items():
        if number > 1:
            yield Fault(str(file.path), "", f"{number} methods or cases have the name {label}; name each")
    first: dict[str, str] = {}
    for variant in variants:
        other = first.setdefault(values_digest(variant.values), variant.label)
        if other != variant.label:
            same = "no key that can change results differs"
            yield Fault(str(file.path), "", f"{other} and {variant.label} are the same run twice: {same}")
