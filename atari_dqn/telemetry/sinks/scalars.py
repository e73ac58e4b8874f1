"""Convert events to named scalars over emulator frames, with the same names for every sink."""

from __future__ import annotations

import math
from collections.abc import Mapping

from atari_dqn.telemetry.events import GateChanged, GateState, Notice, Row

_PLACE = {"step", "env_frames"}
_LEVELS: dict[GateState, int] = {"ok": 0, "watching": 1, "warned": 2, "tripped": 3}


def row_scalars(row: Row) -> dict[str, float]:
    """Return the finite numbers of a row, named like `update/loss` or `eval/full/mean_return`."""
    group = row.table.removesuffix("_log")
    if "eval_type" in row.values:
        group = f"{group}/{row.values['eval_type']}"
    return {
        f"{group}/{name}": float(value)
        for name, value in row.values.items()
        if name not in _PLACE and not isinstance(value, str) and math.isfinite(value)
    }


def gate_scalars(change: GateChanged) -> dict[str, float]:
    """Return the state of a gate as a number: 0 ok, 1 watching, 2 warned, 3 tripped."""
    return {f"gate/{change.gate}": float(_LEVELS[change.state])}


def distributions(notice: Notice) -> dict[str, list[float]]:
    """Return the returns and lengths of the games of an evaluation, for histograms."""
    data: Mapping[str, object] = notice.data if notice.kind == "evaluation" else {}
    return {
        f"eval/{name}": [float(value) for value in values]
        for name, values in data.items()
        if isinstance(values, list | tuple) and values
    }
