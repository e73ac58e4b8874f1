"""`dqn train --plan`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import psutil  # type: ignore[import-untyped]
import typer

from atari_dqn.errors import UserError
from atari_dqn.machine.automatic import Choice
from atari_dqn.machine.hardware import Hardware
from atari_dqn.machine.plan import check_fits, make_plan
from atari_dqn.machine.plan_text import plan_text
from atari_dqn.machine.sizes import MOST_ACTIONS
from atari_dqn.spec.loader import ResolvedSpec
from atari_dqn.train.estimate import estimate_rate

_ANSWER_SECONDS = 9.5
"""The whole command, imports included, takes no longer."""
_LEAST_SECONDS = 4.0
"""What measuring is given even where the imports took long: it has its own."""


def print_plan(resolved: ResolvedSpec, device: str, hardware: Hardware, choices: Sequence[Choice]) -> None:
    """Print what a run would need, its speed measured here for a moment; what cannot fit is refused."""
    for choice in choices:
        typer.echo(str(choice))
    plan = make_plan(resolved.spec, num_actions=MOST_ACTIONS, device=device, hardware=hardware)
    try:
        check_fits(plan, hardware)
    except UserError:
        typer.echo(plan_text(plan, hardware))
        raise
    found = estimate_rate(resolved.spec, device, within_seconds=_seconds_left())
    timed = replace(plan, frames_per_second=found.frames_per_second, rate_basis=found.basis)
    typer.echo(plan_text(timed, hardware))


def _seconds_left() -> float:
    spent: float = time.time() - psutil.Process().create_time()
    return max(_LEAST_SECONDS, _ANSWER_SECONDS - spent)
