"""Read a sweep file: methods, cases and axes, each checked against the schema as a spec is.

spec  = "atari100k_der"       the spec of methods that name none: a file relative to this one, or a name
game  = "atari_100k_26"       a game, a list of games, or a list by name; without it, the spec's game
seeds = 5                     seeds 1 to 5; or seed = [1, 2, 3]; without either, the spec's seed
threads = 1                   threads of torch in each run

[set]                         keys of every run, as in a spec
[methods.NAME]                a method: a spec of its own, or keys that differ, or both
[grid]                        keys with lists of values, of which every combination is a case
[[cases]]                     a case: keys, and a name
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from atari_dqn.scale.axes import read_games, read_seeds, read_threads
from atari_dqn.scale.cases import MOST_CASES, NAME, Case, read_cases, section_entries
from atari_dqn.spec.check import show
from atari_dqn.spec.errors import Fault, SpecError
from atari_dqn.spec.keys import KEYS, SECTIONS
from atari_dqn.spec.kinds import Kind, check_kind, check_name
from atari_dqn.spec.parse import Entry, read_toml, table_entries
from atari_dqn.spec.shipped import find_spec, is_name, shipped_sweeps
from atari_dqn.spec.suggest import did_you_mean

_TOP_KEYS = ("spec", "game", "seed", "seeds", "threads", "set", "methods", "grid", "cases")
_AXES = ("game", "seed")
_MOST_MEMBERS = MOST_CASES


@dataclass(frozen=True, kw_only=True)
class Method:
    """A base spec and the keys in which a method differs from it."""

    name: str
    spec: Path
    entries: tuple[Entry, ...]


@dataclass(frozen=True, kw_only=True)
class SweepFile:
    """A sweep file, whose members are the product of methods, cases, games and seeds."""

    path: Path
    name: str
    shared: tuple[Entry, ...]
    methods: tuple[Method, ...]
    cases: tuple[Case, ...]
    games: tuple[str, ...] | None
    """None for the game of each method's spec."""
    seeds: tuple[int, ...] | None
    threads: int


def read_sweep(path: Path) -> tuple[SweepFile, list[Fault]]:
    """Read a sweep file; return it without what is at fault, and the faults.

    `SpecError` if it cannot be read at all, or has too many runs to resolve the spec of each.
    """
    table = read_file_of("sweep", path, shipped_sweeps())
    faults = list(_key_faults(path, table))
    threads, thread_faults = read_threads(path, table)
    games, game_faults = read_games(path, table)
    seeds, seed_faults = read_seeds(path, table)
    methods, method_faults = _methods(path, table)
    cases, case_faults = read_cases(path, table)
    shared = tuple(section_entries(path, "set", table))
    file = SweepFile(
        path=path,
        name=path.stem,
        shared=shared,
        methods=methods,
        cases=cases,
        games=games,
        seeds=seeds,
        threads=threads,
    )
    faults += [*thread_faults, *game_faults, *seed_faults, *method_faults, *case_faults]
    faults += [*_axis_faults(file), *_overlaps(file)]
    if fault := _too_many_runs(file):
        raise SpecError([*faults, fault])
    return file, faults


def read_file_of(kind: Kind, path: Path, shipped: Mapping[str, Path]) -> dict[str, Any]:
    """Read a sweep or a tune, as `kind` says; `SpecError` for a file of another kind.

    If there is no such file, the error suggests a shipped one.
    """
    check_name(kind, path)
    if not path.exists():
        hint = did_you_mean(path.stem, shipped) if is_name(path) else ""
        expected = f"expected a {kind} file, the folder of a {kind}, or the name of a shipped {kind}"
        raise SpecError([Fault(str(path), "", f"no such file; {expected}{hint}")])
    table = read_toml(path, kind)
    check_kind(kind, path, table.keys())
    return table


def _key_faults(path: Path, table: Mapping[str, Any]) -> Iterator[Fault]:
    for key, value in table.items():
        if key in KEYS or key in SECTIONS:
            if key not in _TOP_KEYS:
                place = f"[set.{key}]" if key in SECTIONS else "[set]"
                yield Fault(str(path), key, f"a key of the spec; write it in {place}, or in a method")
        elif key not in _TOP_KEYS:
            yield Fault(str(path), key, "unknown key" + did_you_mean(key, _TOP_KEYS))
        elif key in ("set", "methods", "grid") and not isinstance(value, dict):
            yield Fault(str(path), key, f"found {show(value)}, expected a section [{key}]")
    if "spec" in table and not isinstance(table["spec"], str):
        yield Fault(
            str(path), "spec", f"found {show(table['spec'])}, expected a file or a shipped spec's name"
        )


def _methods(path: Path, table: Mapping[str, Any]) -> tuple[tuple[Method, ...], list[Fault]]:
    """Return the methods: those that have a name, or the spec of the sweep alone."""
    found, base = table.get("methods"), table.get("spec")
    if found is None:
        return _single_method(path, base)
    if not isinstance(found, dict) or not found:
        empty = Fault(str(path), "methods", "is empty; expected at least one [methods.NAME]")
        return (), [empty] if found == {} else []
    methods: list[Method] = []
    faults: list[Fault] = []
    for name, keys in found.items():
        problem = _method_problem(name, keys, base)
        if problem is not None:
            faults.append(Fault(str(path), f"methods.{name}", problem))
            continue
        others = {key: value for key, value in keys.items() if key != "spec"}
        entries = tuple(table_entries(others, where=f"{path} [methods.{name}]"))
        methods.append(Method(name=name, spec=spec_path(path, keys.get("spec", base)), entries=entries))
    if base is not None and all(isinstance(keys, dict) and "spec" in keys for keys in found.values()):
        problem = "is used by no method, since each names its own; remove it, or that of a method"
        faults.append(Fault(str(path), "spec", problem))
    return tuple(methods), faults


def _single_method(path: Path, base: Any) -> tuple[tuple[Method, ...], list[Fault]]:
    if base is None:
        expected = "expected a file or a shipped spec's name, or [methods.NAME] with a spec each"
        return (), [Fault(str(path), "spec", f"missing; {expected}")]
    if not isinstance(base, str):
        return (), []
    spec = spec_path(path, base)
    if not NAME.fullmatch(spec.stem):
        problem = f"runs cannot be named after {show(spec.stem)}; name the method: [methods.NAME]"
        return (), [Fault(str(path), "spec", problem)]
    return (Method(name=spec.stem, spec=spec, entries=()),), []


def _method_problem(name: str, keys: Any, base: Any) -> str | None:
    """Describe the fault of a method's section; None without one."""
    if not NAME.fullmatch(name):
        return "a name consists of at most 80 letters, digits and _ . = , + -"
    if not isinstance(keys, dict):
        return f"found {show(keys)}, expected a section [methods.{name}]"
    if "set" in keys:
        return f'has a key "set"; write the keys of a method in [methods.{name}] itself'
    if not isinstance(keys.get("spec", base), str):
        return "has no spec; expected a file or a shipped spec's name"
    return None


def spec_path(path: Path, text: str) -> Path:
    """Return the spec that the file of a sweep or a tune names: a file relative to it, or a shipped one."""
    nearby = path.parent / text
    is_nearby = nearby.exists() and not (nearby.is_dir() and is_name(Path(text)))
    return nearby if is_nearby else find_spec(Path(text))


def _axis_faults(file: SweepFile) -> Iterator[Fault]:
    """Yield a fault for each place that sets the game or the seed, which are axes of the whole sweep."""
    for entry in _all_entries(file):
        if entry.key in _AXES:
            example = 'game = ["pong", "breakout"]' if entry.key == "game" else "seed = [1, 2, 3]"
            yield Fault(entry.where, entry.key, f"an axis of the whole sweep; write `{example}` at its top")


def _too_many_runs(file: SweepFile) -> Fault | None:
    members = len(file.methods) * len(file.cases) * len(file.games or [""]) * len(file.seeds or [0])
    if members <= _MOST_MEMBERS:
        return None
    return Fault(str(file.path), "", f"has {members:,} runs; expected at most {_MOST_MEMBERS:,}")


def _all_entries(file: SweepFile) -> Iterable[Entry]:
    owners = [file.shared, *(each.entries for each in file.methods), *(each.entries for each in file.cases)]
    return dict.fromkeys(Entry(each.key, "", each.where) for each in chain.from_iterable(owners))


def _overlaps(file: SweepFile) -> Iterator[Fault]:
    """Yield a fault for each key that is written in more than one kind of place."""
    cases = [entry for case in file.cases for entry in case.entries]
    places = {
        "[set]": file.shared,
        "[methods]": tuple(entry for method in file.methods for entry in method.entries),
        "[grid]": tuple(entry for entry in cases if entry.where.endswith("[grid]")),
        "[[cases]]": tuple(entry for entry in cases if not entry.where.endswith("[grid]")),
    }
    keys = {place: dict.fromkeys(entry.key for entry in entries) for place, entries in places.items()}
    for key in dict.fromkeys(chain.from_iterable(keys.values())):
        found = [place for place, named in keys.items() if key in named]
        if len(found) > 1:
            yield Fault(
                str(file.path), key, f"is written in {' and in '.join(found)}; write it in one of them"
            )
