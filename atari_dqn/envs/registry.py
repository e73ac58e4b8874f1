"""Which environments there are, and how lanes of one are made."""

from __future__ import annotations

from functools import partial

from atari_dqn.envs.lanes import InlineLanes
from atari_dqn.envs.pool import WorkerPool
from atari_dqn.envs.shard import ShardType
from atari_dqn.registry import Registry
from atari_dqn.spec.schema import Env
from atari_dqn.types import Lanes

ENVS: Registry[ShardType] = Registry(
    "environment",
    [
        ("atari", "atari_dqn.envs.atari:AtariShard"),
        ("catch", "atari_dqn.envs.catch:CatchShard"),
    ],
)


def make_lanes(
    *,
    game: str,
    env: Env,
    num_lanes: int,
    seed: int,
    stream: str,
    workers: int = 0,
    power_on_reset: bool = False,
) -> Lanes:
    """Return lanes of a game, in this process (`workers` 0) or in as many others.

    The rows are the same whatever `workers`. `stream` names the random streams, so that training and
    evaluation under one seed draw apart. With `power_on_reset` an episode depends on its number and its
    actions alone, not on the lane's earlier episodes. `UserError` for an unknown kind or game.
    """
    shard_type = ENVS.load(env.kind)
    build_shard = partial(
        shard_type,
        game=game,
        env=env,
        num_lanes=num_lanes,
        seed=seed,
        stream=stream,
        power_on_reset=power_on_reset,
    )
    if workers == 0:
        return InlineLanes(build_shard, num_lanes=num_lanes)
    frame_shape = (env.screen_size_pixels, env.screen_size_pixels)
    return WorkerPool(build_shard, num_lanes=num_lanes, workers=workers, frame_shape=frame_shape)
