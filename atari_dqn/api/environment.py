"""Gymnasium environments with the preprocessing of our agents."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from atari_dqn.api.specs import Overrides, SpecLike, complete_spec
from atari_dqn.envs.games import make_envs
from atari_dqn.envs.gymnasium_env import GymnasiumEnv
from atari_dqn.errors import UserError
from atari_dqn.evaluation.evaluate import STREAM, evaluation_env
from atari_dqn.spec.named_protocols import ProtocolName, with_protocol
from atari_dqn.spec.schema import Spec
from atari_dqn.types import Environments


def make_env(
    spec: SpecLike,
    *,
    overrides: Overrides | None = None,
    evaluation: bool = False,
    protocol: ProtocolName = "run",
) -> GymnasiumEnv:
    """Make a `gymnasium.Env` whose observations, u8[S, H, W], are those of agents of a spec.

    It is the training environment, or with `evaluation` that of evaluations under a protocol, whose episodes
    are the games of `dqn eval`. Rewards are not clipped, and a lost life ends nothing: `info["life_lost"]`
    says so. `reset(seed=...)` begins the games of another seed than the spec's. `UserError` for a protocol
    without `evaluation`.

    >>> import atari_dqn as dqn
    >>> env = dqn.make_env("pong_trackA", overrides={"game": "breakout"})
    >>> env.observation_space.shape, int(env.action_space.n)
    ((4, 84, 84), 4)
    >>> env.close()
    """
    complete = complete_spec(spec, overrides)
    if protocol != "run" and not evaluation:
        raise UserError(f"protocol: found {protocol!r}, which is for evaluations only; add evaluation=True")
    if evaluation:
        complete = with_protocol(complete, protocol)
        complete = replace(complete, env=evaluation_env(complete))
    return GymnasiumEnv(
        partial(_build, complete, evaluation), stack_frames=complete.env.stack_frames, seed=complete.seed
    )


def _build(spec: Spec, evaluation: bool, seed: int) -> Environments:
    return make_envs(
        game=spec.game,
        env=spec.env,
        num_envs=1,
        seed=seed,
        stream=STREAM if evaluation else "training",
        power_on_reset=evaluation,
    )
