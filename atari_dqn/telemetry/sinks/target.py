"""The description of a run that sinks get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from atari_dqn.spec.keys import Scalar


@dataclass(frozen=True, kw_only=True)
class Target:
    """The run directory, name, track and spec of a run."""

    directory: Path
    name: str
    track_label: str
    values: Mapping[str, Scalar]
    """The complete spec, by dotted key."""
