"""Read a tune file: the base spec, the space and the objective, each checked against the schema.

spec  = "pong_quick"          the spec of every trial: a file relative to this one, or a shipped one's name
game  = "pong"                a game, a list of games, or a list by name; without it, the spec's game
seeds = 2                     seeds 1 and 2; or seed = [1, 2, 3]; without either, the spec's seed
threads = 1                   threads of torch in each run

[set]                         keys of every trial, as in a spec
[space]                       keys that are searched, as `space_file` describes them
[objective]                   score, statistic, at_frames, direction
[pruning]                     startup_trials, warmup_frames; without the section every trial is complete
[sampler]                     seed, random_trials, trials_at_once
[budget]                      trials, hours
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atari_dqn.scale.axes import read_games, read_seeds, read_threads
from atari_dqn.scale.cases import NAME, section_entries
from atari_dqn.scale.sweep_file import read_file_of, spec_path
from atari_dqn.scale.tuning.combinations import combination_faults, complete
from atari_dqn.scale.tuning.search_file import read_budget, read_objective, read_pruning, read_sampler
from atari_dqn.scale.tuning.space import ordered
from atari_dqn.scale.tuning.space_file import condition_faults, read_space, space_entries
from atari_dqn.scale.tuning.tune import Tune
from atari_dqn.spec.check import check_entries, show
from atari_dqn.spec.errors import Fault, SpecError
from atari_dqn.spec.keys import KEYS, SECTIONS, Scalar, Values
from atari_dqn.spec.loader import file_entries
from atari_dqn.spec.shipped import shipped_tunes
from atari_dqn.spec.suggest import did_you_mean

_TOP_KEYS = (
    "spec", "game", "seed", "seeds", "threads", "set", "space", "objective", "pruning", "sampler", "budget",
)  # fmt: skip


def load_tune(path: Path) -> Tune:
    """Load a tune file; `SpecError` has all of its faults."""
    table = read_file_of("tune", path, shipped_tunes())
    base, faults = _read_base(path, table)
    space, space_faults = read_space(path, table)
    faults += [*_key_faults(path, table), *space_faults]
    known = {entry.key for entry in space_entries(path, table)}
    fixed: Values = {}
    if base.is_valid:
        fixed, resolve_faults = _resolved(path, base)
        faults += [*resolve_faults, *condition_faults(path, space, known, fixed)]
    threads, thread_faults = read_threads(path, table)
    objective, frames, objective_faults = read_objective(path, table, fixed, base.games)
    pruning, pruning_faults = read_pruning(path, table, frames, len(base.seeds))
    sampler, sampler_faults = read_sampler(path, table)
    budget, budget_faults = read_budget(path, table)
    faults += [*thread_faults, *objective_faults, *pruning_faults, *sampler_faults, *budget_faults]
    dimensions = tuple(ordered(space))
    kept = {key: value for key, value in base.values.items() if key not in known}
    if not faults:
        runs = {**kept, "game": base.games[0], "seed": base.seeds[0]}
        faults += combination_faults(str(path), runs, dimensions)
    if faults:
        raise SpecError(list(dict.fromkeys(faults)))
    return Tune(
        name=path.stem,
        spec=str(base.spec),
        base=kept,
        games=base.games,
        seeds=base.seeds,
        threads=threads,
        space=dimensions,
        objective=objective,
        evaluation_frames=frames,
        pruning=pruning,
        sampler=sampler,
        budget=budget,
    )


@dataclass(frozen=True, kw_only=True)
class _Base:
    """The runs of every trial, as far as the tune file determines them."""

    spec: Path
    values: dict[str, Scalar]
    """The keys of the base spec and of [set] that are valid."""
    games: tuple[str, ...]
    seeds: tuple[int, ...]
    is_valid: bool
    """Whether all of it can be checked together."""


def _key_faults(path: Path, table: Mapping[str, Any]) -> Iterator[Fault]:
    for key, value in table.items():
        if key in ("set", "space") and not isinstance(value, dict):
            yield Fault(str(path), key, f"found {show(value)}, expected a section [{key}]")
        elif key in _TOP_KEYS:
            continue
        elif key in KEYS or key in SECTIONS:
            place = f".{key}]" if key in SECTIONS else "]"
            yield Fault(str(path), key, f"a key of the spec; write it in [set{place} or [space{place}")
        else:
            yield Fault(str(path), key, "unknown key" + did_you_mean(key, _TOP_KEYS))
    if not NAME.fullmatch(path.stem):
        yield Fault(str(path), "", "the name of the file names a folder: letters, digits and _ . = , + -")
    searched = {entry.key for entry in space_entries(path, table)}
    for entry in section_entries(path, "set", table):
        if entry.key in searched:
            yield Fault(str(path), entry.key, "is written in [set] and in [space]; write it in one of them")
        elif entry.key in ("game", "seed"):
            yield Fault(str(path), entry.key, "an axis of the whole tune; write it at its top")


def _read_base(path: Path, table: Mapping[str, Any]) -> tuple[_Base, list[Fault]]:
    """Read the base spec, [set], the games and the seeds."""
    games, faults = read_games(path, table)
    seeds, seed_faults = read_seeds(path, table)
    faults += seed_faults
    found = table.get("spec")
    if not isinstance(found, str):
        problem = "missing" if found is None else f"found {show(found)}"
        faults.append(Fault(str(path), "spec", f"{problem}; expected a file or a shipped spec's name"))
        return _Base(spec=path, values={}, games=(), seeds=(), is_valid=False), faults
    spec = spec_path(path, found)
    try:
        entries = file_entries(spec)
    except SpecError as error:
        return _Base(spec=spec, values={}, games=(), seeds=(), is_valid=False), [*faults, *error.faults]
    checked = check_entries([*entries, *section_entries(path, "set", table)])
    values = checked.values
    if games is None:
        games = (str(values["game"]),) if "game" in values else ()
    if seeds is None:
        seeds = (int(values["seed"]),) if "seed" in values else ()
    faults += checked.faults
    is_valid = bool(not faults and games and seeds)
    if not faults and not is_valid:
        faults.append(Fault(str(path), "game" if seeds else "seeds", "missing, and the base spec has none"))
    return _Base(spec=spec, values=values, games=games, seeds=seeds, is_valid=is_valid), faults


def _resolved(path: Path, base: _Base) -> tuple[Values, list[Fault]]:
    """Return the complete base spec, and the faults that it has for each game."""
    values: Values = {}
    faults: list[Fault] = []
    for game in base.games:
        try:
            values = complete(str(path), {**base.values, "game": game, "seed": base.seeds[0]}, {})
        except SpecError as error:
            faults += error.faults
    return values, faults
