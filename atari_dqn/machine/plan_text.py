"""Format a plan for display, in at most 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from atari_dqn.formatting import duration, size
from atari_dqn.machine.hardware import Hardware
from atari_dqn.machine.plan import PLACES, Plan, free_bytes

_COLUMNS = 80


def plan_text(plan: Plan, hardware: Hardware) -> str:
    """Format a plan as aligned lines: the bytes of each item, the free bytes, and the estimated time."""
    return "\n".join([*_memory_lines(plan, hardware), *_time_lines(plan)])


def _memory_lines(plan: Plan, hardware: Hardware) -> Iterator[str]:
    for place, room in free_bytes(plan, hardware).items():
        needed = plan.bytes(place)
        verdict = "" if needed <= room else ": too little"
        yield f"{PLACES[place]:<26}{size(needed):>12}   of {size(room)} free{verdict}"
        for item in plan.items:
            if item.place == place:
                yield f"  {item.name:<24}{size(item.bytes):>12}   {item.key}".rstrip()


def _time_lines(plan: Plan) -> Iterator[str]:
    if plan.seconds is None or plan.frames_per_second is None:
        reason = plan.rate_basis or "no rate was measured"
        yield f"{'time':<26}{'not known':>12}   {plan.total_frames:,} frames"
        yield f"  {reason}"
        return
    yield f"{'time, an estimate':<26}{duration(plan.seconds):>12}   evaluations left out"
    at = f"{plan.total_frames:,} frames at {plan.frames_per_second:,.0f} a second"
    yield from textwrap.wrap(
        f"{at}: {plan.rate_basis}", _COLUMNS, initial_indent="  ", subsequent_indent="    "
    )
