"""A table of named objects, each imported when it is first used; other packages may add to it."""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from atari_dqn.errors import UserError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledEntry:
    """An entry point of an installed package, as both were when this process first looked for them."""

    name: str
    value: str
    load: Callable[[], object]
    package: str
    version: str

    @classmethod
    def of(cls, entry: EntryPoint) -> InstalledEntry:
        """Read the package's name and version now: an `EntryPoint` reads them anew each time."""
        package = entry.dist
        assert package is not None, "entry points are found in installed packages"
        return cls(
            name=entry.name,
            value=entry.value,
            load=entry.load,
            package=package.name,
            version=package.version,
        )

    @property
    def top_module(self) -> str:
        """The module or package of Python that has the object, without what is below it."""
        return self.value.partition(":")[0].partition(".")[0]


class Registry(Generic[T]):
    """A mapping from a unique name to an object, given as `"module:attribute"`.

    Other packages add names through entry points of `group`. A name that has two objects cannot be used.
    """

    def __init__(self, kind: str, entries: Iterable[tuple[str, str]], *, group: str | None = None) -> None:
        self.kind, self._group = kind, group
        self._targets: dict[str, str] = {}
        for name, target in entries:
            self.add(name, target)

    def add(self, name: str, target: str) -> None:
        """Add an entry; `ValueError` if the name is taken or the target is not `module:attribute`."""
        if name in self._targets:
            raise ValueError(f"{self.kind} {name!r} is registered twice: {self._targets[name]} and {target}")
        if target.count(":") != 1:
            raise ValueError(f"{self.kind} {name!r}: expected 'module:attribute', got {target!r}")
        self._targets[name] = target

    def load(self, name: str) -> T:
        """Import and return the object registered as `name`.

        `UserError` if there is none, if there are several, or if that of another package is no function or
        class, or cannot be imported.
        """
        target, entry = self._targets.get(name), self._entry_point(name)
        if entry is not None and target is not None:
            raise UserError(
                f"{self.kind} {name!r} is built in, but {_described(entry)} has its name; {_REMOVE}"
            )
        if entry is not None:
            with self.using(name):
                return cast(T, _imported(entry))
        if target is None:
            raise UserError(self._unknown(name))
        module, attribute = target.split(":")
        return cast(T, getattr(import_module(module), attribute))

    @contextmanager
    def using(self, name: str) -> Iterator[None]:
        """Convert an exception of the block, which uses an object of another package, to a `UserError`."""
        try:
            yield
        except UserError:
            raise
        except Exception as error:
            entry = self._entry_point(name)
            if entry is None:
                raise
            raise UserError(
                f"{self.kind} {name!r}: {_described(entry)} cannot be used: {_problem(error, entry)}; "
                f"correct that package, or choose another {self.kind}"
            ) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._targets)

    def _entry_point(self, name: str) -> InstalledEntry | None:
        return None if self._group is None else entry_point(self._group, name)

    def _unknown(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._targets, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"unknown {self.kind} {name!r}; expected one of {', '.join(sorted(self._targets))}{hint}"


_REMOVE = "rename it in its package, or uninstall that package"


def entry_point_names(group: str) -> tuple[str, ...]:
    """Return the names that other packages add to a group."""
    return tuple(sorted({entry.name for entry in entry_points_of(group)}))


def entry_point(group: str, name: str) -> InstalledEntry | None:
    """Find the entry point of a name; None if there is none, `UserError` if there are several."""
    found = [entry for entry in entry_points_of(group) if entry.name == name]
    if len(found) > 1:
        raise UserError(
            f"{name!r} is added to {group} by {' and by '.join(map(_described, found))}; {_REMOVE}"
        )
    return found[0] if found else None


@cache
def entry_points_of(group: str) -> tuple[InstalledEntry, ...]:
    """Find the entry points of a group; this reads the metadata of every installed package."""
    from importlib.metadata import entry_points  # here, as most commands need none

    return tuple(map(InstalledEntry.of, entry_points(group=group)))


def _described(entry: InstalledEntry) -> str:
    return f"the entry point {entry.name} = {entry.value} of {entry.package} {entry.version}"


def _imported(entry: InstalledEntry) -> object:
    if ":" not in entry.value:
        raise ValueError("expected MODULE:NAME")
    found: object = entry.load()
    if not callable(found):
        raise TypeError(f"found {type(found).__name__}, expected a function or a class")
    return found


def _problem(error: Exception, entry: InstalledEntry) -> str:
    """Describe an exception with the last line of the entry point's own package that led to it."""
    package = entry.top_module
    places = [
        f" ({frame.f_code.co_filename}, line {line})"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] == package
    ]
    return f"{type(error).__name__}: {error}{''.join(places[-1:])}"
