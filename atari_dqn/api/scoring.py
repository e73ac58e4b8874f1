"""Score policies of other programs under our protocols."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atari_dqn.api.agent import Agent
from atari_dqn.api.specs import Overrides, SpecLike, complete_spec
from atari_dqn.compare.reference.studies import human_random
from atari_dqn.envs.games import game_info
from atari_dqn.errors import UserError
from atari_dqn.evaluation.checkpoint_score import CheckpointScore, at_least_one
from atari_dqn.evaluation.evaluate import play_games
from atari_dqn.evaluation.policies import Policy, PolicyOutputs
from atari_dqn.run.scores import EvaluationScore, score_protocol
from atari_dqn.spec.named_protocols import ProtocolName, with_protocol

Act = Callable[[NDArray[np.uint8]], int]
"""A policy without memory: the action of an observation u8[S, H, W]."""


def evaluate(
    policy: Policy | Act,
    spec: SpecLike,
    *,
    protocol: ProtocolName = "run",
    episodes: int | None = None,
    overrides: Overrides | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> CheckpointScore:
    """Score any policy in the games that `dqn eval` plays for a spec under a protocol.

    No-ops, sticky actions and the protocol's ε come from the same random streams as for our agents.
    `policy`: a function of the observation, or an object with `act(observation, state)`, which returns an
    action and the state for the next call in this game. It is called in this process, for one game at a
    time. `UserError` for an action that there is not, and for an `Agent` of another game.

    >>> import atari_dqn as dqn
    >>> result = dqn.evaluate(
    ...     lambda observation: 0,
    ...     "pong_trackB",
    ...     episodes=1,
    ...     protocol="modern",
    ...     overrides={"evaluation.max_episode_frames": 2_000},
    ... )
    >>> result.protocol.sticky_probability, len(result.score.returns)
    (0.25, 1)
    """
    complete = with_protocol(complete_spec(spec, overrides), protocol)
    player: object = policy
    if isinstance(player, Agent) and player.game != complete.game:
        raise UserError(f"the policy is an agent of {player.game}, the spec is of {complete.game}")
    info = game_info(complete)
    in_process = replace(complete.system, evaluation_envs=1, evaluation_workers=0)
    played = play_games(
        partial(PolicyOutputs, _as_policy(policy), num_actions=info.num_actions),
        replace(complete, system=in_process),
        episodes=at_least_one("episodes", episodes, complete.evaluation.full_episodes),
        on_progress=on_progress,
    )
    score = EvaluationScore.of(played)
    recorded = score_protocol(complete, episodes=score.episodes, checkpoint="last", rom_md5=info.rom_md5)
    return CheckpointScore(
        name=protocol, score=score, protocol=recorded, reference=human_random(complete.game)
    )


def _as_policy(policy: Policy | Act) -> Policy:
    if hasattr(policy, "act"):
        return policy
    return _Stateless(policy)


class _Stateless:
    """A function of the observation as a policy."""

    def __init__(self, act: Act) -> None:
        self._act = act

    def act(self, observation: NDArray[np.uint8], state: Any) -> tuple[int, Any]:
        """Return the action of the function; there is no state."""
        return self._act(observation), state
