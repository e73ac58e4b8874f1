"""An item of a plan: a part of a run's memory or disk space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Place = Literal["ram", "vram", "disk"]


@dataclass(frozen=True, kw_only=True)
class Item:
    """A part of a run's memory or disk space."""

    place: Place
    name: str
    bytes: int
    key: str = ""
    """The key that can be lowered to make it smaller; empty if there is none."""
    is_kept: bool = False
    """Whether these are the checkpoints that a run keeps, of which a resumed run has some already."""
