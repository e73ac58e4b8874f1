"""Arguments and options that several commands share, and checks of their values before slow imports."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar, overload

import typer

from atari_dqn.errors import UserError
from atari_dqn.run.checkpoint.names import run_folder
from atari_dqn.spec.numbers import real_number, whole_number
from atari_dqn.spec.suggest import did_you_mean


class RecordingProtocol(StrEnum):
    """Values of `--protocol` of `dqn record`."""

    RUN = "run"
    CLASSIC = "classic"
    MODERN = "modern"


class EvaluationProtocol(StrEnum):
    """Values of `--protocol` of `dqn eval`."""

    RUN = "run"
    CLASSIC = "classic"
    MODERN = "modern"
    BOTH = "both"


def _devices() -> list[str]:
    return ["auto", "cpu", "cuda"]


def _sinks() -> list[str]:
    from atari_dqn.telemetry.sinks.options import NONE, SINKS

    return [*SINKS, NONE]


def _keys(incomplete: str) -> list[str]:
    from atari_dqn.spec.keys import KEYS

    return [f"{key}=" for key in KEYS if key.startswith(incomplete)]


def _specs(incomplete: str) -> list[str]:
    from atari_dqn.spec.shipped import shipped_specs

    names = [*shipped_specs(), *(path.name for path in Path().glob("*.toml"))]
    return [name for name in names if name.startswith(incomplete)]  # none: the shell completes the path


class SiteName(StrEnum):
    """Values of `--on`."""

    LOCAL = "local"
    RAY = "ray"


MOST_EPISODES = 1_000_000
"""Far above the number of any protocol; a thousand times as many episode numbers would fill the memory."""

AGENT_HELP = "A run, for its latest checkpoint; a checkpoint; or an archive by `dqn export`."
_DEVICE = "auto, cpu, cuda or cuda:N."

SpecPath = Annotated[
    Path,
    typer.Argument(
        metavar="SPEC",
        help="The run's spec: a TOML file, or the name of a shipped one.",
        autocompletion=_specs,
    ),
]
RunPath = Annotated[Path, typer.Argument(metavar="RUN_DIR", help="A directory that `dqn train` made.")]
CheckpointPath = Annotated[
    Path,
    typer.Argument(metavar="RUN_DIR|CHECKPOINT|ARCHIVE", help=AGENT_HELP),
]
OptionalCheckpointPath = Annotated[
    Path | None, typer.Argument(metavar="RUN_DIR|CHECKPOINT|ARCHIVE", help=AGENT_HELP)
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a key: --set learner.batch_size=64. May be repeated.",
        autocompletion=_keys,
    ),
]
DeviceOption = Annotated[str, typer.Option(metavar="DEVICE", help=_DEVICE, autocompletion=_devices)]
OwnDeviceOption = Annotated[
    str | None,
    typer.Option(metavar="DEVICE", help=f"{_DEVICE} Default: the run's own.", autocompletion=_devices),
]
SinkOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sink",
        metavar="NAME",
        help="Report to tensorboard, wandb, mlflow or parquet too. May be repeated.",
        autocompletion=_sinks,
    ),
]
ResumeSinkOption = Annotated[
    list[str] | None,
    typer.Option(
        "--sink",
        metavar="NAME",
        help="Report to tensorboard, wandb, mlflow or parquet too; none for no sink. May be repeated. "
        "Default: the run's own.",
        autocompletion=_sinks,
    ),
]
NotifyOption = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="Run a shell command when the run ends or warns; $DQN_EVENT and $DQN_MESSAGE say why.",
    ),
]
JobsOption = Annotated[
    str | None, typer.Option(metavar="N", help="At most N runs at once. Default: as many as fit.")
]
SiteOption = Annotated[
    str, typer.Option(metavar="PLACE", help="Where the runs are trained: local, or ray for a cluster.")
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="With --on ray: the head of a cluster to join. Default: a cluster on this machine alone.",
    ),
]
PlainOption = Annotated[
    bool, typer.Option("--plain", help="Print one line per period instead of the live view.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]

Choice = TypeVar("Choice", bound=StrEnum)


@overload
def integer(option: str, text: str, *, low: int = 1, high: int | None = None) -> int: ...
@overload
def integer(option: str, text: None, *, low: int = 1, high: int | None = None) -> None: ...
def integer(option: str, text: str | None, *, low: int = 1, high: int | None = None) -> int | None:
    """Parse an option's integer, which may be written as `2.4M`; `UserError` for another value."""
    if text is None:
        return None
    value = whole_number(text)
    if value is None or value < low or (high is not None and value > high):
        bounds = f"at least {low}" if high is None else f"from {low} to {high}"
        raise UserError(f"{option}: found {text!r}, expected an integer {bounds}")
    return value


LONGEST_SECONDS = 86_400.0
"""The longest period of an option: a day."""


@overload
def number(option: str, text: str, *, low: float = -math.inf, high: float = math.inf) -> float: ...
@overload
def number(option: str, text: None, *, low: float = -math.inf, high: float = math.inf) -> None: ...
def number(option: str, text: str | None, *, low: float = -math.inf, high: float = math.inf) -> float | None:
    """Parse an option's finite number, which may be written as `2.4M`; `UserError` for another value."""
    if text is None:
        return None
    value = real_number(text)
    if value is None or not (math.isfinite(value) and low <= value <= high):
        bounds = f"a number at least {low:g}" if math.isfinite(low) else "a finite number"
        if math.isfinite(high):
            bounds = f"a number from {low:g} to {high:g}"
        raise UserError(f"{option}: found {text!r}, expected {bounds}")
    return value


def choice(option: str, text: str, kind: type[Choice]) -> Choice:
    """Parse an option that is one of the words of `kind`; `UserError` for another."""
    words = [str(word) for word in kind]
    if text not in words:
        expected = " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
        raise UserError(f"{option}: found {text!r}, expected {expected}{did_you_mean(text, words)}")
    return kind(text)


def is_on_ray(on: str, address: str | None, *, plan: bool, status: bool) -> bool:
    """Parse `--on`; `UserError` for options that do not go with it, or with each other."""
    if plan and status:
        raise UserError("--plan and --status: expected one of them")
    found = choice("--on", on, SiteName) is SiteName.RAY
    if found and (plan or status):
        raise UserError(
            "--on ray: expected without --plan, which plans for this machine, and without --status"
        )
    if address is not None and not found:
        raise UserError("--address: expected with --on ray")
    return found


def refuse_ignored(option: str, *, is_given: bool, **others: bool) -> None:
    """Raise `UserError` if `option`, which starts nothing, is given with others that it would ignore.

    `others`: whether each of them is given, by its name.
    """
    ignored = [f"--{name}" for name, is_ignored in others.items() if is_ignored]
    if is_given and ignored:
        raise UserError(f"{option}: expected without {', '.join(ignored)}: it starts nothing")


def file_or_folder(
    kind: str,
    path: Path,
    folder: Path | None,
    *,
    shipped: Mapping[str, Path],
    is_of_kind: Callable[[Path], bool],
) -> Path:
    """Return the file of a sweep or a tune, as `kind` says, or the folder in which one has begun.

    `folder`: the option `--folder`. `UserError` for any other folder, and for a folder with the option.
    """
    from atari_dqn.files.new_files import refuse_leading_hyphen
    from atari_dqn.spec.shipped import find_shipped

    if folder is not None:
        refuse_leading_hyphen(folder, where="--folder")
    found = find_shipped(path, shipped, is_folder_of_kind=is_of_kind if folder is None else None)
    if found.is_dir() and folder is not None:
        raise UserError(
            f"--folder: found {folder}, although {path} is a folder; name a {kind} file, or no --folder"
        )
    if found.is_dir() and not is_of_kind(found):
        raise UserError(
            f"{path}: is not the folder of a {kind}; expected a {kind} file, or a folder it was begun in"
        )
    return found


def check_run(path: Path) -> None:
    """Raise an error if a path is not a run, one of its checkpoints, or an archive."""
    from atari_dqn.run.archive.archive import is_archive, refuse_missing_archive
    from atari_dqn.run.directory import RunDirectory

    if is_archive(path):  # loading it checks every part
        return
    refuse_missing_archive(path)
    RunDirectory.open(run_folder(path))


def check_spec(path: Path, overrides: Sequence[str] | None) -> None:
    """Raise the `SpecError` of an invalid spec."""
    from atari_dqn.spec.loader import load_spec

    load_spec(path, overrides or [])


def check_outputs(paths: Sequence[Path]) -> None:
    """Raise a `UserError` for an output file that exists, is named twice, or has no folder."""
    files = [os.path.realpath(path) for path in paths]
    for index, path in enumerate(paths):
        if files[index] in files[:index]:
            raise UserError(f"{path} is named twice; name another file for each output")
        if os.path.lexists(path):
            raise UserError(f"{path} exists and is never overwritten; remove it, or give another name")
        if not path.parent.is_dir():
            raise UserError(f"{path}: the folder {path.parent} does not exist; make it, or name another file")
