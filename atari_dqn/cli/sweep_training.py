"""Train the members of a sweep, show them meanwhile, and print how they compare."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

from atari_dqn.envs.processes import interrupts_blocked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from atari_dqn.cli.workers import MakeWorkers
    from atari_dqn.machine.hardware import Hardware
    from atari_dqn.scale.on_ray.cluster import Cluster, Node
    from atari_dqn.scale.opening import OpenedSweep


def train_here(
    opened: OpenedSweep,
    hardware: Hardware,
    devices: Sequence[str],
    *,
    jobs: int | None,
    period_seconds: float,
    plain: bool,
) -> None:
    """Train the members that are left on this machine."""
    from atari_dqn.cli.workers import local_workers

    workers = local_workers(
        opened.folder,
        hardware,
        devices,
        threads=opened.record.threads,
        jobs=jobs,
        period_seconds=period_seconds,
    )
    _train(opened, workers, plain=plain)


def train_on_ray(
    opened: OpenedSweep,
    cluster: Cluster,
    nodes: Sequence[Node],
    *,
    address: str | None,
    device: str,
    jobs: int | None,
    period_seconds: float,
    plain: bool,
) -> None:
    """Train the members that are left on the nodes; a run whose command has ended stops by itself."""
    from atari_dqn.cli.workers import continuing, on_ray_options, ray_workers

    options = on_ray_options(address)
    with ray_workers(
        opened.folder,
        cluster,
        nodes,
        device=opened.record.device if device == "auto" else device,
        threads=opened.record.threads,
        jobs=jobs,
        period_seconds=period_seconds,
        continue_command=continuing("sweep", opened.folder.path, options),
    ) as workers:
        _train(opened, workers, plain=plain, options=options)


def _train(opened: OpenedSweep, make_workers: MakeWorkers, *, plain: bool, options: str = "") -> None:
    """Train the members that are left. `options`: of the command that continues, which is printed."""
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
            report=view.report,
        )
    conclude(status, result, guard.received, options)
