"""Load a spec file and complete it from its track, or report all of its faults together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from atari_dqn.spec.added_packages import missing_packages
from atari_dqn.spec.check import Checked, check_entries, resolved_expectation, show
from atari_dqn.spec.completeness import key_faults
from atari_dqn.spec.constraints import AUTO
from atari_dqn.spec.contradictions import contradictions
from atari_dqn.spec.digest import cannot_change_results
from atari_dqn.spec.errors import Fault, SpecError
from atari_dqn.spec.history import FORMERLY_RECORDED, with_added_keys
from atari_dqn.spec.keys import KEYS, Values, build, unresolved
from atari_dqn.spec.kinds import check_kind, check_name
from atari_dqn.spec.parse import SET_OPTION, Entry, override_entry, read_toml, table_entries
from atari_dqn.spec.schema import Spec
from atari_dqn.spec.shipped import find_spec
from atari_dqn.spec.tracks import load_parts, load_track, override_track

_KEYS_OF_EVERY_RUN = frozenset({"track", "game", "seed"})
_NEVER_DEVIATING_KEYS = _KEYS_OF_EVERY_RUN | {"learner.threads", "learner.compile"}
"""Keys that never mark a run: the number of threads and compilation only change rounding."""


@dataclass(frozen=True, kw_only=True)
class ResolvedSpec:
    """A complete spec, and its deviations from its track."""

    spec: Spec
    name: str
    """The file's name without its suffix, followed by the game if an override changes it."""
    deviations: tuple[str, ...]
    """Dotted keys that deviate: choices of parts that differ from the track's, and values that differ from
    those that this version's track gives for the chosen parts. Toggles, game, seed and keys that cannot
    change results never deviate."""

    @property
    def track_label(self) -> str:
        """The track's letter, followed by a star if the run deviates from the track."""
        return self.spec.track + ("*" if self.deviations else "")


def load_spec(path: str | Path, overrides: Sequence[str] = (), *, where: str = SET_OPTION) -> ResolvedSpec:
    """Load a spec, apply `section.key=value` overrides, and complete it from its track.

    `path` may be the name of a shipped spec. If an override is repeated, the last one counts. `SpecError` has
    every fault; `where` is what errors call the place of the overrides.
    """
    path = find_spec(Path(path))
    entries = file_entries(path)
    override_entries, faults = _read_overrides(overrides, where)
    resolved = resolve_entries(path, [*entries, *override_entries], faults)
    return replace(resolved, name=_name_of(path, entries, resolved.spec.game))


def file_entries(path: Path) -> list[Entry]:
    """Read the entries of a spec file; a complete spec of an earlier version gets the keys added since then.

    `SpecError` for a sweep or tune file.

    A spec is complete if it has every key that applied when it was written. A run's `spec.toml` and the
    output of `dqn spec show` are complete. Added keys get the values that keep the behaviour of the spec, not
    those of its track.
    """
    check_name("spec", path)
    table = read_toml(path)
    check_kind("spec", path, table.keys())
    entries = list(table_entries(table, where=str(path)))
    written = check_entries(entries).values
    complete = with_added_keys(written, {})
    absent = KEYS.keys() - complete.keys() - FORMERLY_RECORDED.keys()
    if any(KEYS[key].applies(complete) for key in absent):
        return entries
    return [*entries, *(Entry(key, complete[key], str(path)) for key in complete if key not in written)]


def resolve_entries(path: Path, entries: Iterable[Entry], faults: Iterable[Fault] = ()) -> ResolvedSpec:
    """Complete the entries of a spec from its track; a key that is written twice has its last value.

    `path`: the file that errors name where no entry is at fault. `faults`: others that were found before.
    """
    checked = check_entries(entries)
    checked.faults.extend(faults)
    return _resolve(path, checked, _completed_from_track(checked), is_existing_run=False)


def load_resolved(path: str | Path, provenance: Mapping[str, Any] = MappingProxyType({})) -> ResolvedSpec:
    """Load the `spec.toml` of a run, which has every key of the version that began the run.

    Keys that are newer are added from `spec.history`, not from the track. `provenance`: the contents of
    provenance.json, which has values of earlier versions that were no keys then. `SpecError` lists every
    fault; that of an added part which is not installed names the packages that are missing.
    """
    path = Path(path)
    checked = check_entries(table_entries(read_toml(path), where=str(path)))
    checked.faults[:] = _with_missing_packages(checked.faults, provenance)
    checked.faults.extend(_unresolved_auto(path, checked.values))
    values = with_added_keys(checked.values, provenance)
    valid = {key: values[key] for key in values if key not in checked.invalid}
    return _resolve(path, checked, valid, is_existing_run=True)


def _with_missing_packages(faults: Sequence[Fault], provenance: Mapping[str, Any]) -> Iterator[Fault]:
    """Name, in the faults of parts that packages add, the packages of the run that are not installed."""
    for fault in faults:
        is_of_part = fault.key in KEYS and KEYS[fault.key].group is not None
        missing = missing_packages(provenance.get("versions", {})) if is_of_part else []
        if missing:
            problem = f"{fault.problem}; the run began with {' and '.join(missing)}, which is not installed"
            yield replace(fault, problem=problem)
        else:
            yield fault


def _name_of(path: Path, entries: Sequence[Entry], game: str) -> str:
    """Return the name of a run: the file's, followed by the game if the file names another one."""
    written = next((entry.value for entry in entries if entry.key == "game"), game)
    return path.stem if written == game else f"{path.stem}_{game}"


def _unresolved_auto(path: Path, values: Values) -> Iterator[Fault]:
    """Yield a fault for each key that is `auto` in the spec of a run, where it must have been resolved."""
    for key in unresolved(values):
        expected = resolved_expectation(KEYS[key])
        yield Fault(str(path), key, f"found {show(AUTO)} in the spec of a run, expected {expected}")


def _read_overrides(overrides: Iterable[str], where: str) -> tuple[list[Entry], list[Fault]]:
    entries: list[Entry] = []
    faults: list[Fault] = []
    for text in overrides:
        try:
            entries.append(override_entry(text, where=where))
        except SpecError as error:
            faults.extend(error.faults)
    return entries, faults


def _completed_from_track(checked: Checked) -> Values:
    """Complete the values from their track, without the keys that have an invalid value."""
    if "track" not in checked.values:
        return checked.values
    values = override_track(load_track(str(checked.values["track"])), load_parts(), checked.values)
    return {key: value for key, value in values.items() if key not in checked.invalid}


def _resolve(path: Path, checked: Checked, values: Values, *, is_existing_run: bool) -> ResolvedSpec:
    combination = _combination_faults(path, checked, values, is_existing_run=is_existing_run)
    faults = [*checked.faults, *combination]
    if faults:
        raise SpecError(faults)
    return ResolvedSpec(spec=build(values), name=path.stem, deviations=deviating_keys(values))


def _combination_faults(
    path: Path, checked: Checked, values: Values, *, is_existing_run: bool
) -> Iterator[Fault]:
    # Without a track nearly every key is missing: only the keys of every run are reported, to show the cause.
    absent = () if "track" in values else [key for key in KEYS if key not in _KEYS_OF_EVERY_RUN]
    yield from key_faults(checked, values, where=str(path), absent=absent)
    for key, problem in contradictions(values, is_existing_run=is_existing_run):
        yield Fault(checked.where.get(key, str(path)), key, problem)


def deviating_keys(values: Values) -> tuple[str, ...]:
    """Return the keys in which complete values deviate from their track, as in `ResolvedSpec.deviations`."""
    track, parts = load_track(str(values["track"])), load_parts()
    choosing = {part.key for part in parts}
    chosen = {key: values[key] for key in KEYS if key in choosing and key in values}
    expected = override_track(track, parts, chosen)
    return tuple(
        key
        for key, value in values.items()
        if not _never_deviates(key)
        and (value != expected.get(key) or (key in choosing and value != track.get(key)))
    )


def _never_deviates(key: str) -> bool:
    return key in _NEVER_DEVIATING_KEYS or KEYS[key].section == "toggles" or cannot_change_results(key)
