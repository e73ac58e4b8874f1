"""From a spec file to a complete spec, or to every fault in it at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from atari_dqn.spec.check import Checked, check_entries, show
from atari_dqn.spec.complete import key_faults
from atari_dqn.spec.contradictions import contradictions
from atari_dqn.spec.digest import is_free
from atari_dqn.spec.errors import Fault, SpecError
from atari_dqn.spec.history import brought_up_to_date
from atari_dqn.spec.keys import KEYS, Values, build
from atari_dqn.spec.parse import Entry, override_entry, read_toml, table_entries
from atari_dqn.spec.schema import Spec
from atari_dqn.spec.shipped import find_spec
from atari_dqn.spec.tracks import layered, load_parts, load_track

_KEYS_OF_EVERY_RUN = frozenset({"track", "game", "seed"})
AUTO = "auto"
AUTO_KEYS = ("learner.precision",)
"""Keys that may be `auto` in a spec file, and not in a run's own: `machine.automatic` replaces it."""
_UNMARKED_KEYS = _KEYS_OF_EVERY_RUN | {"learner.compile"}
"""What marks no run: compiling rounds otherwise as another number of threads does, which no paper gives."""


@dataclass(frozen=True, kw_only=True)
class ResolvedSpec:
    """A complete spec, and how it stands to its track."""

    spec: Spec
    name: str
    """The file's name without its ending, and the game where `--set` changes it; run directories have it."""
    deviations: tuple[str, ...]
    """Dotted keys with another value than the track gives for the parts chosen, and such choices themselves.

    Toggles, game, seed and system keys are free. Compared with the track as it is today.
    """

    @property
    def track_label(self) -> str:
        """The track, with a star if the run deviates from it."""
        return self.spec.track + ("*" if self.deviations else "")


def load_spec(path: str | Path, overrides: Sequence[str] = ()) -> ResolvedSpec:
    """Load a spec over its track, with `section.key=value` overrides; where one repeats, the last counts.

    `path` may be the name of a shipped spec. `SpecError` holds every fault in it.
    """
    path = find_spec(Path(path))
    file_entries = list(table_entries(read_toml(path), where=str(path)))
    override_entries, faults = _read_overrides(overrides)
    checked = check_entries([*file_entries, *override_entries])
    checked.faults.extend(faults)
    resolved = _resolve(path, checked, _over_track(checked), is_begun=False)
    return replace(resolved, name=_name_of(path, file_entries, resolved.spec.game))


def load_resolved(path: str | Path) -> ResolvedSpec:
    """Load a run's own spec, which has every key there was when it began: no track fills in the others."""
    path = Path(path)
    checked = check_entries(table_entries(read_toml(path), where=str(path)))
    checked.faults.extend(_left_open(path, checked.values))
    values = brought_up_to_date(checked.values)
    usable = {key: values[key] for key in values if key not in checked.spoiled}
    return _resolve(path, checked, usable, is_begun=True)


def _name_of(path: Path, file_entries: Sequence[Entry], game: str) -> str:
    """Return a run's name: its file's, with the game where that is not the file's own."""
    written = next((entry.value for entry in file_entries if entry.key == "game"), game)
    return path.stem if written == game else f"{path.stem}_{game}"


def _left_open(path: Path, values: Values) -> Iterator[Fault]:
    """Yield a fault for each key that a run's own spec leaves to the machine: the run began with a value."""
    for key in AUTO_KEYS:
        if values.get(key) == AUTO:
            chosen = ", ".join(show(choice) for choice in KEYS[key].choices if choice != AUTO)
            yield Fault(str(path), key, f"found {show(AUTO)} in a run's own spec, expected one of {chosen}")


def _read_overrides(overrides: Iterable[str]) -> tuple[list[Entry], list[Fault]]:
    entries: list[Entry] = []
    faults: list[Fault] = []
    for text in overrides:
        try:
            entries.append(override_entry(text))
        except SpecError as error:
            faults.extend(error.faults)
    return entries, faults


def _over_track(checked: Checked) -> Values:
    """Return the values over their track's, without those whose written value cannot be used."""
    if "track" not in checked.values:
        return checked.values
    values = layered(load_track(str(checked.values["track"])), load_parts(), checked.values)
    return {key: value for key, value in values.items() if key not in checked.spoiled}


def _resolve(path: Path, checked: Checked, values: Values, *, is_begun: bool) -> ResolvedSpec:
    faults = [*checked.faults, *_faults_together(path, checked, values, is_begun=is_begun)]
    if faults:
        raise SpecError(faults)
    return ResolvedSpec(spec=build(values), name=path.stem, deviations=deviating_keys(values))


def _faults_together(path: Path, checked: Checked, values: Values, *, is_begun: bool) -> Iterator[Fault]:
    # Without a track nothing fills in the rest: to name every other key as missing would bury the one cause.
    absent = () if "track" in values else [key for key in KEYS if key not in _KEYS_OF_EVERY_RUN]
    yield from key_faults(checked, values, where=str(path), absent=absent)
    for key, problem in contradictions(values, is_begun=is_begun):
        yield Fault(checked.where.get(key, str(path)), key, problem)


def deviating_keys(values: Values) -> tuple[str, ...]:
    """Return the dotted keys in which complete values deviate from their track, in the schema's order."""
    track, parts = load_track(str(values["track"])), load_parts()
    choosing = {part.key for part in parts}
    chosen = {key: values[key] for key in KEYS if key in choosing and key in values}
    expected = layered(track, parts, chosen)
    return tuple(
        key
        for key, value in values.items()
        if not _marks_none(key)
        and (value != expected.get(key) or (key in choosing and value != track.get(key)))
    )


def _marks_none(key: str) -> bool:
    return key in _UNMARKED_KEYS or KEYS[key].section == "toggles" or is_free(key)
