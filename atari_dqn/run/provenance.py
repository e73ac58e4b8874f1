"""Record the provenance of a run: code, versions, hardware, game and protocols."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

import atari_dqn
from atari_dqn import wait_variables
from atari_dqn.machine.hardware import Hardware

PACKAGES = ("torch", "numpy", "ale-py", "gymnasium", "opencv-python-headless")
"""Distributions whose versions can change the results of a run."""
MOST_THREADS = 2**16
"""The largest plausible number of threads; a larger number in a file is damage."""


class _Digests(Struct):
    digest: str
    toml_sha256: str


class _Track(Struct):
    label: str
    deviations: list[str] = []


class _Gpu(Struct):
    name: str


class _Hardware(Struct):
    cpu_model: str
    cpu_flags: list[str] | None
    gpus: list[_Gpu]


class _Commit(Struct):
    commit: str
    dirty: bool


class Provenance(Struct):
    """Types of the keys of provenance.json that are read, in files of any version."""

    spec: _Digests
    name: str = ""
    started: str = ""
    command_line: list[str] = []
    track: _Track | None = None
    protocols: dict[str, dict[str, Any]] = {}
    versions: dict[str, str | None] = {}
    git: _Commit | None = None
    device: str = ""
    replay_device: str = ""
    torch_threads: Annotated[int, Meta(ge=1, le=MOST_THREADS)] = 1
    kernels: list[str] = []
    compiler: str | None = None
    hardware: _Hardware | None = None
    auto: dict[str, bool | int | str] = {}


def provenance(
    *,
    command_line: Sequence[str],
    track: str,
    deviations: Sequence[str],
    game: str,
    rom_md5: str,
    protocols: Mapping[str, Any],
    device: str,
    torch_threads: int,
    kernels: Sequence[str],
    hardware: Hardware,
    packages: Mapping[str, str],
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> dict[str, Any]:
    """Return the provenance of a run as plain data.

    `track`: the label with its mark (`A*` for a run that deviates in the keys `deviations`). `protocols`: the
    fields of each protocol by fingerprint. `torch_threads` and `kernels`, our compiled kernels in use, are
    recorded because they change rounding; the wait policy of OpenMP threads changes only the speed.
    `packages`: the versions of other packages whose parts the run uses (`spec.added_packages`).
    `RunDirectory.create` adds the digests of the spec.
    """
    return {
        "started": now().isoformat(timespec="seconds"),
        "command_line": list(command_line),
        "track": {"label": track, "deviations": list(deviations)},
        "game": {"id": game, "rom_md5": rom_md5},
        "protocols": dict(protocols),
        "versions": {**versions(), **packages},
        "git": git_state(Path(atari_dqn.__file__).parent),
        "device": device,
        "torch_threads": torch_threads,
        "openmp": wait_variables(),
        "kernels": list(kernels),
        "hardware": asdict(hardware),
    }


def versions() -> dict[str, str | None]:
    """Return the versions of all software that can change results; None for a missing package."""
    system = {
        "atari_dqn": atari_dqn.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    return system | {name: _version(name) for name in PACKAGES}


def git_state(package: Path) -> dict[str, Any] | None:
    """Return the commit of the checkout that contains `package`, and whether its files differ from it.

    Return None for an installed package; a repository further up the path is not that of the package.
    """
    root = package.parent
    if not (root / ".git").exists():
        return None
    commit = _git(root, "rev-parse", "HEAD")
    changes = _git(root, "status", "--porcelain", "--", str(package))
    return None if commit is None or changes is None else {"commit": commit, "dirty": bool(changes)}


def _git(root: Path, *arguments: str) -> str | None:
    """Return the output of git; None if git is missing or fails."""
    git = shutil.which("git")
    if git is None:
        return None
    # Inside a git hook, GIT_DIR would point to another repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        result = subprocess.run(  # noqa: S603 - fixed arguments, no shell
            [git, "-C", str(root), *arguments], capture_output=True, text=True, timeout=10, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
