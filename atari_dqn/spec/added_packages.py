"""The packages that add parts of a spec: their versions, digests of their code, and which are missing."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from atari_dqn.files.failures import reading
from atari_dqn.registry import InstalledEntry, entry_point, entry_points_of
from atari_dqn.spec.keys import KEYS, added_parts
from atari_dqn.spec.schema import Spec

_CODE = "code of "
_NO_PACKAGES = {"python", "platform"}
"""Names among the versions of a run's provenance that are not of packages."""
_DIGITS = 12


def packages_of(spec: Spec) -> dict[str, str]:
    """Return the versions of the packages that add parts of a spec, by name; empty if all parts are ours.

    Behind the versions, the entries `code of NAME` have digests of the packages' Python files, so that a
    change without a new version is noticed.
    """
    found = [entry_point(group, name) for group, name in added_parts(spec)]
    return _versions(entry for entry in found if entry is not None)


def packages_here() -> dict[str, str]:
    """Return the same of all installed packages that add parts, whichever specs use them."""
    groups = dict.fromkeys(key.group for key in KEYS.values() if key.group)
    return _versions(entry for group in groups for entry in entry_points_of(group))


def without_code(packages: Mapping[str, str]) -> dict[str, str]:
    """Return the packages without the digests of their code."""
    return {name: version for name, version in packages.items() if not name.startswith(_CODE)}


def unrecorded_code(packages: Mapping[str, str], recorded: Mapping[str, str | None]) -> set[str]:
    """Return the digests of code that a run of an earlier version did not record, by name."""
    return {name for name in packages if name.startswith(_CODE) and name not in recorded}


def missing_packages(recorded: Mapping[str, str | None]) -> list[str]:
    """Return those packages among the recorded versions of a run that are not installed, with versions."""
    from importlib.metadata import PackageNotFoundError, version

    missing = []
    for name, began in recorded.items():
        if name in _NO_PACKAGES or name.startswith(_CODE) or began is None:
            continue
        try:
            version(name)
        except PackageNotFoundError:
            missing.append(f"{name} {began}")
    return missing


def _versions(entries: Iterable[InstalledEntry]) -> dict[str, str]:
    versions: dict[str, str] = {}
    modules: dict[str, set[str]] = defaultdict(set)
    for entry in entries:
        versions[entry.package] = entry.version
        modules[entry.package].add(entry.top_module)
    return versions | {f"{_CODE}{name}": code_digest(frozenset(found)) for name, found in modules.items()}


@cache
def code_digest(modules: frozenset[str]) -> str:
    """Compute the digest of the Python files of some modules and packages, without importing them.

    A process computes it once, when it builds its first part of them: later changes of the files are not in
    the code that it has imported.
    """
    digest = hashlib.sha256()
    for module in sorted(modules):
        for name, path in _python_files(module):
            with reading(path):
                data = path.read_bytes()
            digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:_DIGITS]


def _python_files(module: str) -> Iterator[tuple[str, Path]]:
    """Yield the Python files of a module or package with their names in it; none if it is missing."""
    found = find_spec(module)
    if found is None:
        return
    for folder in map(Path, found.submodule_search_locations or ()):
        for path in sorted(folder.rglob("*.py")):
            yield f"{module}/{path.relative_to(folder)}", path
    if found.submodule_search_locations is None and found.origin is not None:
        yield module, Path(found.origin)
