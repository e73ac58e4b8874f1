"""Train the members of a sweep, show them meanwhile, and print how they compare."""

from __future__ import annotations

import sys
from contextlib import closing
from threading import Event
from typing import TYPE_CHECKING

from atari_dqn.envs.processes import interrupts_blocked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from atari_dqn.machine.hardware import Hardware
    from atari_dqn.scale.opening import Opened
    from atari_dqn.scale.scheduler import Workers


def train_here(
    opened: Opened,
    hardware: Hardware,
    devices: Sequence[str],
    *,
    jobs: int | None,
    period_seconds: float,
    plain: bool,
) -> None:
    """Train the members that are left on this machine."""
    with interrupts_blocked():
        from atari_dqn.run.leases.owner import Owner
        from atari_dqn.scale.local import LocalWorkers
        from atari_dqn.scale.room import Needs, Room
        from atari_dqn.scale.runner import Runner

    def workers(report: Callable[[str], None]) -> Workers:
        runner = Runner(
            folder=opened.folder,
            owner=Owner.current(),
            stop=Event(),
            report=report,
            period_seconds=period_seconds,
        )
        needs, threads = Needs(hardware, opened.record.threads), opened.record.threads
        return LocalWorkers(
            runner=runner, room=Room(hardware, devices), needs=needs, threads=threads, jobs=jobs
        )

    train(opened, workers, plain=plain)


def train(
    opened: Opened,
    make_workers: Callable[[Callable[[str], None]], Workers],
    *,
    plain: bool,
    options: str = "",
) -> None:
    """Train the members that are left with workers, which are made with a function for their reports.

    `options`: those with which the command that continues is printed.
    """
    with interrupts_blocked():
        from atari_dqn.cli.sweep_outcome import conclude
        from atari_dqn.run.sweep.status import SweepStatus
        from atari_dqn.scale.scheduler import run_members
        from atari_dqn.train.interrupt import SignalGuard
        from atari_dqn.view.sweep_views import sweep_view

    status = SweepStatus(opened.folder.path)
    with SignalGuard() as guard, closing(sweep_view(status, sys.stdout, plain=plain)) as view:
        result = run_members(
            opened.record.members,
            opened.folder,
            make_workers(view.report),
            is_interrupted=lambda: guard.received is not None,
            show=view.show,
        )
    conclude(status, result, guard.received, options)
