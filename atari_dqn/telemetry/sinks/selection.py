"""Which sinks a run has: by name, remembered in its directory, so that a resume has them too."""

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
from atari_dqn.telemetry.sinks.background import BackgroundSink
from atari_dqn.telemetry.sinks.notify import NotifySink
from atari_dqn.telemetry.sinks.target import Target

MakeSink = Callable[[Target], Sink]

SINKS: Registry[MakeSink] = Registry(
    "sink",
    [
        ("tensorboard", "atari_dqn.telemetry.sinks.tensorboard:TensorBoardSink"),
        ("wandb", "atari_dqn.telemetry.sinks.wandb:WandbSink"),
        ("parquet", "atari_dqn.telemetry.sinks.parquet:ParquetSink"),
    ],
)
"""Each is called with the run's target, on its own thread. docs/extending.md says how to add one."""
NONE = "none"
_EXTRAS = ("tensorboard", "wandb")
"""Sinks that need a package of their own name, which an extra of that name installs."""
_REMEMBERED = "sinks.json"


def chosen_sinks(names: Sequence[str]) -> tuple[str, ...]:
    """Return the sinks that are asked for, each once; `UserError` if one is unknown or cannot work."""
    chosen = tuple(dict.fromkeys(name for name in names if name != NONE))
    for name in chosen:
        if name in _EXTRAS and find_spec(name) is None:
            raise UserError(
                f"--sink {name} needs {name}, which is missing; `pip install 'atari-dqn[{name}]'`"
            )
        SINKS.load(name)
    if "wandb" in chosen:
        from atari_dqn.telemetry.sinks.wandb import require_key

        require_key()
    return chosen


def remembered_sinks(run: Path) -> tuple[str, ...]:
    """Return the sinks a run had last; none where that is not recorded."""
    try:
        names = parse_json(read_regular(run / _REMEMBERED))["sinks"]
    except (OSError, ValueError, KeyError, TypeError):
        return ()
    known = names if isinstance(names, list) else []
    return tuple(name for name in known if isinstance(name, str) and name in set(SINKS))


@dataclass(frozen=True, kw_only=True)
class Outlets:
    """Where a run's events go beside its own files and the view."""

    sinks: tuple[str, ...] = ()
    """Names, as `chosen_sinks` returns them."""
    notify: str | None = None
    """A shell command; None for none."""

    def open(self, target: Target) -> list[BackgroundSink]:
        """Start the sinks, each on its thread, and remember them in the run's directory."""
        remembered = target.directory / _REMEMBERED
        if self.sinks or remembered.exists():
            write_json_atomically(remembered, {"sinks": list(self.sinks)})
        opened = [BackgroundSink(name, partial(SINKS.load(name), target)) for name in self.sinks]
        if self.notify is not None:
            opened.append(BackgroundSink("notify", partial(NotifySink, self.notify, target), persistent=True))
        return opened


NO_OUTLETS = Outlets()
