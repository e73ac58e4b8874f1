"""Select the optional sinks of a run by name; sinks.json records them, so that a resume uses them too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from atari_dqn.errors import UserError
from atari_dqn.files.atomic import read_regular, write_json_atomically
from atari_dqn.files.documents import parse_json
from atari_dqn.registry import Registry
from atari_dqn.telemetry.events import Sink
from atari_dqn.telemetry.sinks.background_sink import BackgroundSink
from atari_dqn.telemetry.sinks.notify import NotifySink
from atari_dqn.telemetry.sinks.target import Target

MakeSink = Callable[[Target], Sink]

SINKS: Registry[MakeSink] = Registry(
    "sink",
    [
        ("tensorboard", "atari_dqn.telemetry.sinks.tensorboard:TensorBoardSink"),
        ("wandb", "atari_dqn.telemetry.sinks.wandb:WandbSink"),
        ("mlflow", "atari_dqn.telemetry.sinks.mlflow:MlflowSink"),
        ("parquet", "atari_dqn.telemetry.sinks.parquet:ParquetSink"),
    ],
)
"""Factories of sinks, called with the `Target` on the thread of the sink. See docs/extending.md."""
NONE = "none"
_EXTRAS = ("tensorboard", "wandb", "mlflow")
"""Sinks that need the package and the extra of the same name."""
_FILE_NAME = "sinks.json"


def checked_sinks(names: Sequence[str]) -> tuple[str, ...]:
    """Return the distinct names; raise `UserError` if one is unknown or lacks its package or key."""
    distinct = tuple(dict.fromkeys(name for name in names if name != NONE))
    for name in distinct:
        if name in _EXTRAS and find_spec(name) is None:
            raise UserError(
                f"--sink {name} needs {name}, which is missing; `pip install 'atari-dqn[{name}]'`"
            )
        SINKS.load(name)
    if "wandb" in distinct:
        from atari_dqn.telemetry.sinks.wandb import require_key

        require_key()
    return distinct


def recorded_sinks(run: Path) -> tuple[str, ...]:
    """Return the sinks that sinks.json of a run records; none without a valid file."""
    try:
        names = parse_json(read_regular(run / _FILE_NAME))["sinks"]
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    known = names if isinstance(names, list) else []
    return tuple(name for name in known if isinstance(name, str) and name in set(SINKS))


@dataclass(frozen=True, kw_only=True)
class SinkOptions:
    """The sinks of a run in addition to its own files and the view."""

    sinks: tuple[str, ...] = ()
    """Names returned by `checked_sinks`."""
    notify: str | None = None
    """The shell command of the `NotifySink`; None for no such sink. `UserError` for an empty one."""

    def __post_init__(self) -> None:
        if self.notify is not None and not self.notify.strip():
            raise UserError("--notify: found no command, expected a shell command")

    def open(self, target: Target) -> list[BackgroundSink]:
        """Start each sink on its thread, and record the names in sinks.json of the run directory."""
        path = target.directory / _FILE_NAME
        if self.sinks or path.exists():
            write_json_atomically(path, {"sinks": list(self.sinks)})
        opened = [BackgroundSink(name, partial(SINKS.load(name), target)) for name in self.sinks]
        if self.notify is not None:
            opened.append(BackgroundSink("notify", partial(NotifySink, self.notify, target), persistent=True))
        return opened


NO_SINKS = SinkOptions()
