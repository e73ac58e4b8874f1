"""The folder of a tune: its record, which decides what its trials are, its runs, and its outcome.

FOLDER/tune.json        the tune as it began, the device, the resolved `auto` keys, the budget
FOLDER/trials.jsonl     Optuna's log: each trial when it begins, and when it ends
FOLDER/clock.json       how long `dqn tune` has worked here
FOLDER/runs/            the runs of the trials, a folder as that of a sweep
FOLDER/best/            the specs of the best trials
FOLDER/trials.csv, trials.png
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files.atomic import exists, write_json_atomically
from atari_dqn.files.documents import check_types, read_json, with_infinity
from atari_dqn.files.failures import write_failure, writing
from atari_dqn.formatting import shortened
from atari_dqn.run.folder_kinds import TUNE_RECORD, TUNE_RUNS
from atari_dqn.run.leases.links import check_links
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.scale.tuning.tune import Budget, Tune, to_plain
from atari_dqn.spec.keys import Scalar

SCHEMA_VERSION = 1
_MOST_DIFFERENCES = 5
_ELSEWHERE = "name another folder with --folder"


@dataclass(frozen=True, kw_only=True)
class TuneRecord:
    """A tune as its folder records it."""

    tune: Tune
    device: str
    """`cpu` or `cuda`: the type of device of every run."""
    auto: Mapping[str, Scalar]
    """The value of each `auto` key."""


@dataclass(frozen=True)
class TuneFolder:
    """The paths of a tune."""

    path: Path

    @property
    def record(self) -> Path:
        """The record of the tune."""
        return self.path / TUNE_RECORD

    @property
    def log(self) -> Path:
        """Optuna's log of the trials."""
        return self.path / "trials.jsonl"

    @property
    def clock(self) -> Path:
        """How long `dqn tune` has worked here."""
        return self.path / "clock.json"

    @property
    def runs(self) -> SweepFolder:
        """The folder of the runs."""
        return SweepFolder(self.path / TUNE_RUNS)

    @property
    def best(self) -> Path:
        """The folder of the best specs."""
        return self.path / "best"

    @property
    def table(self) -> Path:
        """The table of all trials."""
        return self.path / "trials.csv"

    @property
    def plot(self) -> Path:
        """The plot of all trials."""
        return self.path / "trials.png"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder and lock it for this command; `UserError` if another one works in it."""
        with writing(self.path):
            self.runs.create()
            file = (self.path / ".lock").open("a")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(
                    f"{self.path}: another `dqn tune` works there; wait for it, or use --status to look"
                ) from None
            except OSError as error:  # a file system without locks
                raise write_failure(Path(file.name), error) from error
            check_links(self.runs.leases.path)
            yield


def read_tune_record(folder: TuneFolder) -> TuneRecord:
    """Read the record of a tune; raise `DamagedError`, with a remedy, if it is missing or invalid."""
    try:
        return _read_record(folder)
    except DamagedError as error:
        raise DamagedError(f"{error}; restore the file, or begin the tune in another folder") from error


def _read_record(folder: TuneFolder) -> TuneRecord:
    data: Any = read_json(folder.record)
    version = data.get("schema_version") if isinstance(data, dict) else None
    if version != SCHEMA_VERSION:
        raise DamagedError(f"{folder.record}: schema version {version}; this program reads {SCHEMA_VERSION}")
    found = {key: value for key, value in data.items() if key != "schema_version"}
    check_types(folder.record, found, TuneRecord)
    record = msgspec.convert(found, TuneRecord)
    tune = record.tune
    space = tuple(replace(each, choices=tuple(map(with_infinity, each.choices))) for each in tune.space)
    base = {key: with_infinity(value) for key, value in tune.base.items()}
    return replace(record, tune=replace(tune, base=base, space=space))


def write_tune_record(folder: TuneFolder, record: TuneRecord) -> None:
    """Write the record of a tune atomically."""
    plain = {"tune": to_plain(record.tune), "device": record.device, "auto": dict(record.auto)}
    write_json_atomically(folder.record, {"schema_version": SCHEMA_VERSION, **plain})


def recorded(tune: Tune, folder: TuneFolder, device: str) -> TuneRecord | None:
    """Return the record of a folder in which a tune goes on, with the budget raised; None if it begins there.

    `UserError` if the folder holds anything else, or if more differs than a budget that is raised.
    """
    path = folder.path
    if not exists(path):
        return None
    if not path.is_dir():
        raise UserError(f"{path}: is not a folder; {_ELSEWHERE}")
    if not exists(folder.record):
        leftover = f".{folder.record.name}."  # of a first write that was killed
        if any(
            entry.name not in (TUNE_RUNS, ".lock") and not entry.name.startswith(leftover)
            for entry in path.iterdir()
        ):
            raise UserError(f"{path}: holds other files; a tune begins in a folder of its own: {_ELSEWHERE}")
        return None
    before = read_tune_record(folder)
    differing = list(_differences(before.tune, tune))
    if differing:
        raise UserError(
            f"{path}: holds a tune that differs in {shortened(differing, _MOST_DIFFERENCES)}; "
            f"only its budget can be raised: {_ELSEWHERE}"
        )
    if before.device != device:
        raise UserError(
            f"{path}: its runs began with device {before.device}, found {device}, with which results are "
            f"rounded differently; keep it, or {_ELSEWHERE}"
        )
    _check_raised(folder, before.tune.budget, tune.budget)
    return replace(before, tune=replace(before.tune, budget=tune.budget))


def _differences(before: Tune, tune: Tune) -> Iterator[str]:
    """Yield the names of what differs, apart from the budget and the path of the base spec."""
    first, second = to_plain(before), to_plain(tune)
    for name in first:
        if name in ("budget", "spec") or first[name] == second[name]:
            continue
        yield from _keys(first[name], second[name], name)


def _keys(first: Any, second: Any, name: str) -> Iterator[str]:
    """Yield the keys in which two values of the base or the space differ, or else the name of the values."""
    if name == "space":
        first, second = ({each["key"]: each for each in dimensions} for dimensions in (first, second))
    if not isinstance(first, dict) or not isinstance(second, dict):
        yield name
        return
    found = [key for key in dict.fromkeys([*first, *second]) if first.get(key) != second.get(key)]
    yield from found if name in ("base", "space") else (f"{name}.{key}" for key in found)
    if not found:
        yield f"the order of {name}"


def _check_raised(folder: TuneFolder, before: Budget, budget: Budget) -> None:
    """Refuse a budget that is lower in trials or hours. No limit is higher than any."""
    for name in ("trials", "hours"):
        known, found = getattr(before, name), getattr(budget, name)
        if found is not None and (known is None or found < known):
            began = "no limit" if known is None else f"{known:,}"
            raise UserError(
                f"{folder.path}: budget.{name}: found {found:,}, the folder has {began}; "
                "a budget can only be raised"
            )


class Stopwatch:
    """How long `dqn tune` has worked in a folder, over all its commands. A kill loses a few seconds."""

    _PERIOD_SECONDS = 10.0

    def __init__(self, folder: TuneFolder) -> None:
        self._path, self._before = folder.clock, worked_seconds(folder)
        self._began = self._saved_at = time.monotonic()

    @property
    def seconds(self) -> float:
        """The time so far."""
        return self._before + time.monotonic() - self._began

    def save(self, *, now: bool = False) -> None:
        """Write the time to the folder, at most once in a period unless `now`."""
        if now or time.monotonic() - self._saved_at >= self._PERIOD_SECONDS:
            self._saved_at = time.monotonic()
            write_json_atomically(self._path, {"seconds": self.seconds})


def worked_seconds(folder: TuneFolder) -> float:
    """Return how long `dqn tune` has worked in a folder; 0 if its clock is missing or damaged."""
    with suppress(DamagedError):
        found = read_json(folder.clock)
        seconds = found.get("seconds") if isinstance(found, dict) else None
        return float(seconds) if isinstance(seconds, int | float) and seconds >= 0 else 0.0
    return 0.0
