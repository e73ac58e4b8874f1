"""Score policies of other programs under our protocols."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from atari_dqn.api.agent import Agent
from atari_dqn.api.arguments import check_count
from atari_dqn.api.specs import Overrides, SpecLike, complete_spec
from atari_dqn.envs.games import game_info
from atari_dqn.errors import UserError
from atari_dqn.evaluation.checkpoint_score import CheckpointScore, checkpoint_score
from atari_dqn.evaluation.evaluate import play_games
from atari_dqn.evaluation.outputs import MakeOutputs, make_outputs
from atari_dqn.evaluation.policies import Policy, PolicyOutputs
from atari_dqn.spec.named_protocols import ProtocolName, with_protocol
from atari_dqn.spec.protocol import CheckpointChoice
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo

Act = Callable[[NDArray[np.uint8]], int]
"""A policy without memory: the action of an observation u8[S, H, W]."""


def evaluate(
    policy: Policy | Act | Agent,
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
    time. An `Agent` plays as in `Agent.evaluate`. Raise `UserError` if the policy returns an action that the
    game does not have, or if an `Agent` has another game, other observations or other actions.

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
    check_count("episodes", episodes)
    complete = with_protocol(complete_spec(spec, overrides), protocol)
    info = game_info(complete)
    in_process = replace(complete.system, evaluation_envs=1, evaluation_workers=0)
    make, choice = _outputs_of(policy, complete, info)
    complete = _as_trained(policy, complete)
    played = play_games(
        make,
        replace(complete, system=in_process),
        episodes=complete.evaluation.full_episodes if episodes is None else episodes,
        on_progress=on_progress,
    )
    return checkpoint_score(complete, protocol, played, checkpoint=choice, info=info)


def _as_trained(policy: object, spec: Spec) -> Spec:
    """Copy into a spec the settings of an agent's training that protocols record; if the policy is one."""
    if not isinstance(policy, Agent):
        return spec
    trained = policy.spec
    return replace(
        spec,
        env=replace(spec.env, terminal_on_life_loss=trained.env.terminal_on_life_loss),
        learner=replace(spec.learner, max_abs_reward=trained.learner.max_abs_reward),
    )


def _outputs_of(
    policy: Policy | Act | Agent, spec: Spec, info: GameInfo
) -> tuple[MakeOutputs, CheckpointChoice]:
    """Return a function that makes the outputs of a policy, and which of an agent's weights these are."""
    if isinstance(policy, Agent):
        return _agent_outputs(policy, spec, info), policy.frozen.choice
    return partial(PolicyOutputs, _as_policy(policy), num_actions=info.num_actions), "last"


def _agent_outputs(agent: Agent, spec: Spec, info: GameInfo) -> MakeOutputs:
    """Return a function that makes the outputs of an agent, with its memory, in the games of a spec."""
    if agent.game != spec.game:
        raise UserError(f"the policy is an agent of {agent.game}, the spec is of {spec.game}")
    for found, expected in (
        (_observations(agent.spec, agent.frozen.info), _observations(spec, info)),
        (f"the actions {', '.join(agent.action_names)}", f"the actions {', '.join(info.action_names)}"),
    ):
        if found != expected:
            raise UserError(f"the policy is an agent with {found}, the spec has {expected}")
    return partial(
        make_outputs,
        agent.frozen.network,
        max_abs_reward=agent.spec.learner.max_abs_reward,
        with_returns=False,
        captured=spec.system.cuda_graphs,
    )


def _observations(spec: Spec, info: GameInfo) -> str:
    return f"observations of {spec.env.stack_frames} frames of {'×'.join(map(str, info.frame_shape))}"


def _as_policy(policy: object) -> Policy:
    """Return an object with `act` unchanged, wrap a function, and raise `UserError` for anything else."""
    if isinstance(policy, type):
        raise UserError(f"policy: found the class {policy.__name__}, expected an instance")
    if hasattr(policy, "act"):
        return cast("Policy", policy)
    if callable(policy):
        return _Stateless(policy)
    expected = "a function of the observation, or an object with `act(observation, state)`"
    raise UserError(f"policy: found {policy!r}, expected {expected}")


class _Stateless:
    """A function of the observation as a policy."""

    def __init__(self, act: Act) -> None:
        self._act = act

    def act(self, observation: NDArray[np.uint8], state: Any) -> tuple[int, Any]:
        """Return the action of the function; there is no state."""
        return self._act(observation), state
