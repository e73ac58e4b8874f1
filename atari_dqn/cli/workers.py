"""The workers that train the runs of a sweep or a tune: of this machine, or of a Ray cluster."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.run.leases.lease import PERIOD_SECONDS

if TYPE_CHECKING:
    from atari_dqn.machine.hardware import Hardware
    from atari_dqn.run.sweep.folder import SweepFolder
    from atari_dqn.scale.on_ray.cluster import Cluster, Node
    from atari_dqn.scale.scheduler import Workers

    MakeWorkers = Callable[[Callable[[str], None]], Workers]
    """Makes workers, with a function for their reports."""


def local_workers(
    folder: SweepFolder,
    hardware: Hardware,
    devices: Sequence[str],
    *,
    threads: int,
    jobs: int | None,
    period_seconds: float = PERIOD_SECONDS,
) -> MakeWorkers:
    """Return a function that makes the workers of this machine."""
    with interrupts_blocked():
        from threading import Event

        from atari_dqn.run.leases.owner import Owner
        from atari_dqn.scale.local import LocalSite
        from atari_dqn.scale.room import Disk, Needs, Room
        from atari_dqn.scale.runner import Runner
        from atari_dqn.scale.site_workers import SiteWorkers

    def workers(report: Callable[[str], None]) -> Workers:
        runner = Runner(
            folder=folder,
            owner=Owner.current(),
            stop=Event(),
            report=report,
            period_seconds=period_seconds,
        )
        disk = Disk(hardware.disk_free_bytes, folder.written_bytes)
        site = LocalSite(runner, Room(hardware, devices, disk=disk), Needs(hardware, threads))
        return SiteWorkers(site, folder.leases, period_seconds=period_seconds, jobs=jobs)

    return workers


@contextmanager
def joined_cluster(address: str | None, path: Path, *, store_bytes: int = 0) -> Iterator[Cluster]:
    """Join the cluster at an address, or start one on this machine that ends with the block.

    `store_bytes`: what the object store of a cluster on this machine must hold at least.
    """
    from atari_dqn.scale.on_ray.address import check_ray, check_token, parse_address

    check_ray()
    if address is not None:
        host, port = parse_address(address)
        check_token(host, os.environ)
    with ExitStack() as stack:
        if address is None:
            host, port = stack.enter_context(_started_cluster(path, store_bytes))
        with interrupts_blocked():  # Ray reads the environment when it is imported
            from atari_dqn.scale.on_ray.cluster import joined

        yield stack.enter_context(joined(host, port))


@contextmanager
def _started_cluster(path: Path, store_bytes: int) -> Iterator[tuple[str, int]]:
    """Start a cluster on this machine, and set the environment by which this process may join it."""
    with interrupts_blocked():
        from atari_dqn.scale.on_ray.address import parse_address
        from atari_dqn.scale.on_ray.local_cluster import local_cluster, local_environment
        from atari_dqn.scale.room import find_sweep_hardware

    typer.echo("starting Ray on this machine")
    os.environ.update(local_environment())
    with local_cluster(find_sweep_hardware(path).cores_usable, store_bytes) as address:
        yield parse_address(address)


@contextmanager
def ray_workers(
    folder: SweepFolder,
    cluster: Cluster,
    nodes: Sequence[Node],
    *,
    device: str,
    threads: int,
    jobs: int | None,
    continue_command: str,
    period_seconds: float = PERIOD_SECONDS,
) -> Iterator[MakeWorkers]:
    """Yield a function that makes the workers of a cluster; at the end of the block the runs have stopped.

    `continue_command`: the one that is printed if the cluster is lost.
    """
    from contextlib import closing

    from atari_dqn.scale.on_ray.cluster import ClusterLostError
    from atari_dqn.scale.on_ray.command import command_leases
    from atari_dqn.scale.on_ray.site import RaySite
    from atari_dqn.scale.site_workers import SiteWorkers

    with ExitStack() as stack:
        commands = stack.enter_context(command_leases(folder, period_seconds))

        def workers(report: Callable[[str], None]) -> Workers:
            site = RaySite(
                cluster=cluster,
                nodes=nodes,
                folder=folder,
                device=device,
                threads=threads,
                commands=commands,
                report=report,
            )
            stack.enter_context(closing(site))
            return SiteWorkers(site, folder.leases, period_seconds=period_seconds, jobs=jobs)

        try:
            yield workers
        except ClusterLostError as error:
            raise ClusterLostError(f"{error}; `{continue_command}` continues") from None


def continuing(command: str, folder: Path, options: str = "") -> str:
    """Return the command line that goes on with a sweep or a tune."""
    return " ".join(filter(None, [f"dqn {command}", shlex.quote(str(folder)), options]))


def on_ray_options(address: str | None) -> str:
    """Return the options of a command on Ray, for the command that continues it."""
    return "--on ray" if address is None else f"--on ray --address {address}"
