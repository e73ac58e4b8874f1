"""`dqn sweep --on ray`: join or start a cluster, and train the members of a sweep on its nodes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from atari_dqn.cli.sweep_training import train
from atari_dqn.envs.processes import interrupts_blocked

if TYPE_CHECKING:
    from collections.abc import Callable

    from atari_dqn.scale.on_ray.cluster import Cluster, Node
    from atari_dqn.scale.opening import Opened
    from atari_dqn.scale.scheduler import Workers


@contextmanager
def joined_cluster(address: str | None, path: Path) -> Iterator[Cluster]:
    """Join the cluster at an address, or start one on this machine that ends with the block."""
    from atari_dqn.scale.on_ray.address import check_ray, check_token, parse_address

    check_ray()
    if address is not None:
        host, port = parse_address(address)
        check_token(host, os.environ, Path.home())
    with ExitStack() as stack:
        if address is None:
            host, port = stack.enter_context(_started_cluster(path))
        with interrupts_blocked():  # Ray reads the environment when it is imported
            from atari_dqn.scale.on_ray.cluster import joined

        yield stack.enter_context(joined(host, port))


@contextmanager
def _started_cluster(path: Path) -> Iterator[tuple[str, int]]:
    """Start a cluster on this machine, and set the environment by which this process may join it."""
    with interrupts_blocked():
        from atari_dqn.scale.on_ray.address import parse_address
        from atari_dqn.scale.on_ray.local_cluster import local_cluster, local_environment
        from atari_dqn.scale.room import find_sweep_hardware

    typer.echo("starting Ray on this machine")
    os.environ.update(local_environment())
    with local_cluster(find_sweep_hardware(path).cores_usable) as address:
        yield parse_address(address)


def train_on_ray(
    opened: Opened,
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
    from contextlib import closing

    from atari_dqn.scale.on_ray.cluster import ClusterLostError
    from atari_dqn.view.sweep_text import continue_command

    options = "--on ray" if address is None else f"--on ray --address {address}"
    from atari_dqn.scale.on_ray.command import command_lease
    from atari_dqn.scale.on_ray.site import RaySite
    from atari_dqn.scale.on_ray.workers import RayWorkers

    with ExitStack() as stack:
        command = stack.enter_context(command_lease(opened.folder, period_seconds))

        def workers(report: Callable[[str], None]) -> Workers:
            site = RaySite(
                cluster=cluster,
                nodes=nodes,
                folder=opened.folder,
                device=opened.record.device if device == "auto" else device,
                threads=opened.record.threads,
                command=command,
                report=report,
            )
            stack.enter_context(closing(site))
            return RayWorkers(opened.folder, site, period_seconds=period_seconds, jobs=jobs)

        try:
            train(opened, workers, plain=plain, options=options)
        except ClusterLostError as error:
            raise ClusterLostError(
                f"{error}; `{continue_command(opened.folder.path, options)}` continues"
            ) from None
