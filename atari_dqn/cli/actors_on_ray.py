"""`dqn train --on ray` and `dqn resume --on ray`: where the actors of a run play."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atari_dqn.cli.options import is_on_ray
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.errors import DiskFullError, InfrastructureError, InterruptedRunError, UserError

if TYPE_CHECKING:
    import torch

    from atari_dqn.machine.hardware import Hardware
    from atari_dqn.run.directory import RunDirectory
    from atari_dqn.scale.on_ray.actor_room import NodeCapacity
    from atari_dqn.spec.schema import Spec
    from atari_dqn.train.build import MakeActors
    from atari_dqn.train.preflight import CheckRunFits

ActorSiteOption = Annotated[
    str,
    typer.Option(
        "--on", metavar="PLACE", help="Where the actors of the spec play: local, or ray for a cluster."
    ),
]


@dataclass(frozen=True, kw_only=True)
class ActorSite:
    """Where the actors of a run play."""

    make: MakeActors
    check_run_fits: CheckRunFits


def plays_on_ray(on: str, address: str | None, spec: Spec, *, plan: bool = False) -> bool:
    """Parse `--on`; `UserError` for a spec or an option that does not go with it."""
    found = is_on_ray(on, address, plan=False, status=False)
    if found and spec.actors.mode == "none":
        raise UserError(
            '--on ray: expected a spec with actors, such as `apex_small`; this one has actors.mode = "none". '
            "`dqn sweep --on ray` trains whole runs on a cluster"
        )
    if found and plan:
        raise UserError("--on ray: expected without --plan, which plans for this machine")
    return found


@contextmanager
def actors_at(on: str, address: str | None, spec: Spec, path: Path) -> Iterator[ActorSite]:
    """Yield where the actors of a spec play; a cluster is joined, and its nodes are described, before."""
    if not plays_on_ray(on, address, spec):
        with interrupts_blocked():
            from atari_dqn.train.build import local_actors
            from atari_dqn.train.preflight import check_run_fits
        yield ActorSite(make=local_actors, check_run_fits=check_run_fits)
        return
    with interrupts_blocked():
        from atari_dqn.cli.workers import joined_cluster, on_ray_options
        from atari_dqn.scale.on_ray.actor_room import store_bytes

    with joined_cluster(address, path, store_bytes=store_bytes(spec)) as cluster:
        nodes = cluster.describe([*cluster.alive()], path)
        with interrupts_blocked():
            from atari_dqn.actors.supervised import actors_of
            from atari_dqn.envs.games import game_info
            from atari_dqn.scale.on_ray.actor_carrier import RayCarrier
        try:
            yield ActorSite(
                make=lambda spec: actors_of(spec, game_info(spec), RayCarrier(spec, cluster)),
                check_run_fits=partial(check_fits_on_nodes, nodes, cluster.own_node),
            )
        except (InterruptedRunError, InfrastructureError, DiskFullError) as error:
            error.add_note(f"its actors played on Ray; {on_ray_options(address)} lets them play there again")
            raise


def check_fits_on_nodes(
    nodes: Sequence[NodeCapacity],
    own_node: str,
    spec: Spec,
    device: torch.device,
    hardware: Hardware,
    existing: RunDirectory | None,
) -> None:
    """Raise a `UserError` if this machine cannot hold the learner, or the nodes the actors together with it.

    `own_node`: the node that is this machine. `existing`: the run to resume.
    """
    from atari_dqn.machine.plan import make_plan
    from atari_dqn.machine.sizes import MOST_ACTIONS
    from atari_dqn.scale.on_ray.actor_room import LearnerNeed, check_actors_fit
    from atari_dqn.train import preflight

    preflight.check_run_fits(spec, device, hardware, existing, actors_here=False)
    plan = make_plan(spec, num_actions=MOST_ACTIONS, device=str(device), hardware=hardware, actors_here=False)
    learner = LearnerNeed(node=own_node, ram=plan.bytes("ram"))
    check_actors_fit(spec, nodes, learner, has_begun=existing is not None)
