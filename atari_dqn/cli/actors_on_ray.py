"""`dqn train --on ray` and `dqn resume --on ray`: where the actors of a run play."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atari_dqn.cli.options import is_on_ray
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.errors import InfrastructureError, InterruptedRunError, UserError

if TYPE_CHECKING:
    from atari_dqn.spec.schema import Spec
    from atari_dqn.train.build import MakeActors

ActorSiteOption = Annotated[
    str,
    typer.Option(
        "--on", metavar="PLACE", help="Where the actors of the spec play: local, or ray for a cluster."
    ),
]


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
def actors_at(on: str, address: str | None, spec: Spec, path: Path) -> Iterator[MakeActors]:
    """Yield a function that makes the actors of a spec; a cluster is joined and checked before."""
    if not plays_on_ray(on, address, spec):
        with interrupts_blocked():
            from atari_dqn.train.build import local_actors
        yield local_actors
        return
    with interrupts_blocked():
        from atari_dqn.cli.workers import joined_cluster, on_ray_options
        from atari_dqn.scale.on_ray.actor_room import check_actors_fit, store_bytes

    with joined_cluster(address, path, store_bytes=store_bytes(spec)) as cluster:
        check_actors_fit(spec, cluster.describe([*cluster.alive()], path))
        with interrupts_blocked():
            from atari_dqn.actors.supervised import actors_of
            from atari_dqn.envs.games import game_info
            from atari_dqn.scale.on_ray.actor_carrier import RayCarrier
        try:
            yield lambda spec: actors_of(spec, game_info(spec), RayCarrier(spec, cluster))
        except (InterruptedRunError, InfrastructureError) as error:
            error.add_note(f"its actors played on Ray; {on_ray_options(address)} lets them play there again")
            raise
