"""Which environments there are, and how lanes of one are made."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from atari_dqn.envs.lanes import BuildShard, InlineLanes
from atari_dqn.envs.pool import WorkerPool
from atari_dqn.envs.shard import Shard, ShardType
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
    episodes: Sequence[int] | None = None,
) -> Lanes:
    """Return lanes of a game, in this process (`workers` 0) or in as many others.

    The rows are the same whatever `workers`. `stream` names the random streams, so that training and
    evaluation under one seed draw apart. With `power_on_reset` an episode depends on its number and its
    actions alone, not on the lane's earlier episodes. `episodes` are the numbers of those to play, in place
    of 0, 1, 2, …: lane e of E plays the e-th, the (e + E)-th, and so on. `UserError` for an unknown kind or
    game.
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
    if episodes is not None:
        build_shard = partial(_shard_of_episodes, build_shard, tuple(episodes))
    if workers == 0:
        return InlineLanes(build_shard, num_lanes=num_lanes)
    frame_shape = (env.screen_size_pixels, env.screen_size_pixels)
    return WorkerPool(build_shard, num_lanes=num_lanes, workers=workers, frame_shape=frame_shape)


def _shard_of_episodes(build_shard: BuildShard, episodes: Sequence[int], *, lanes: range) -> Shard:
    shard = build_shard(lanes=lanes)
    shard.play_episodes(episodes)
    return shard
