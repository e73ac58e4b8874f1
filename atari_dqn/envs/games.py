"""The registry of environment types, and the function that makes environments."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import partial

from atari_dqn.envs.inline import InlineEnvironments
from atari_dqn.envs.pool import WorkerPool
from atari_dqn.envs.shard import BuildShard, Shard, ShardType
from atari_dqn.registry import Registry
from atari_dqn.spec.schema import Env, Spec
from atari_dqn.types import Environments, GameInfo

ENVS: Registry[ShardType] = Registry(
    "environment",
    [
        ("atari", "atari_dqn.envs.atari:AtariShard"),
        ("catch", "atari_dqn.envs.catch:CatchShard"),
        ("recall", "atari_dqn.envs.recall:RecallShard"),
    ],
)


def make_envs(
    *,
    game: str,
    env: Env,
    num_envs: int,
    seed: int,
    stream: str,
    workers: int = 0,
    part: range | None = None,
    power_on_reset: bool = False,
    episodes: Sequence[int] | None = None,
) -> Environments:
    """Make `num_envs` environments of a game, in `workers` worker processes, or in this process if 0.

    Their steps do not depend on `workers`. `stream` names the random streams, which differ between training
    and evaluation under the same seed. With `power_on_reset` an episode depends only on its number and its
    actions, not on earlier episodes of the environment. `episodes` are the numbers of the episodes to play
    instead of 0, 1, 2, …: environment e of E plays those at index e, e + E, e + 2E, …. `part`: the indices of
    the environments to make here; by default all. `UserError` for an unknown kind or game.
    """
    shard_type = ENVS.load(env.kind)
    build_shard = partial(
        shard_type,
        game=game,
        env=env,
        num_envs=num_envs,
        seed=seed,
        stream=stream,
        power_on_reset=power_on_reset,
    )
    if episodes is not None:
        build_shard = partial(_shard_of_episodes, build_shard, tuple(episodes))
    if workers == 0:
        return InlineEnvironments(build_shard, envs=range(num_envs) if part is None else part)
    assert part is None, "a part of the environments is stepped in one process"
    frame_shape = (env.screen_size_pixels, env.screen_size_pixels)
    return WorkerPool(build_shard, num_envs=num_envs, workers=workers, frame_shape=frame_shape)


def make_game(*, game: str, env: Env, seed: int, stream: str, episode: int) -> Shard:
    """Make one environment whose first episode is that of this number: the same game as among others."""
    return ENVS.load(env.kind)(
        game=game,
        env=env,
        envs=range(episode, episode + 1),
        num_envs=episode + 1,
        seed=seed,
        stream=stream,
        power_on_reset=True,
    )


def _shard_of_episodes(build_shard: BuildShard, episodes: Sequence[int], *, envs: range) -> Shard:
    shard = build_shard(envs=envs)
    shard.play_episodes(episodes)
    return shard


def game_info(spec: Spec) -> GameInfo:
    """Return the frame shape, actions and ROM of the game of a spec."""
    with closing(
        make_envs(game=spec.game, env=spec.env, num_envs=1, seed=spec.seed, stream="evaluation")
    ) as envs:
        return envs.info
