"""Make the role of an actor from a spec."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from atari_dqn.actors.acting import ActionsOnly, WithQValues
from atari_dqn.actors.first_priorities import (
    FirstPriorities,
    SampleKind,
    SequenceErrors,
    TransitionErrors,
)
from atari_dqn.actors.role import (
    ActionSelector,
    ActorRole,
    Published,
    StateRows,
    no_states,
    not_counted,
)
from atari_dqn.actors.weights import FlatWeights
from atari_dqn.assembly.parts import build_actor, build_network
from atari_dqn.assembly.sequence_parts import has_sequences, sequence_loss
from atari_dqn.envs.games import make_envs
from atari_dqn.replay.sequences import burn_in_begins
from atari_dqn.spec.constraints import given
from atari_dqn.spec.schema import Spec

_CPU = torch.device("cpu")


def envs_of_actor(number: int, *, num_envs: int, num_actors: int) -> range:
    """Return the environments that an actor plays."""
    each = num_envs // num_actors
    return range(number * each, (number + 1) * each)


def build_role(
    spec: Spec,
    number: int,
    published: Published,
    *,
    incarnation: int = 0,
    count_steps: Callable[[int], None] = not_counted,
) -> ActorRole:
    """Make an actor, on the CPU. Each incarnation has random streams of its own."""
    envs = make_envs(
        game=spec.game,
        env=spec.env,
        num_envs=spec.env.num_envs,
        part=envs_of_actor(number, num_envs=spec.env.num_envs, num_actors=given(spec.actors.processes)),
        seed=spec.seed,
        stream="training" if incarnation == 0 else f"training, incarnation {incarnation}",
    )
    network = build_network(spec, envs.info, _CPU).requires_grad_(False)
    actor = build_actor(spec, envs, network, _CPU, "actor", number, incarnation)
    has_priorities = sends_priorities(spec)
    selector: ActionSelector = WithQValues(actor) if has_priorities else ActionsOnly(actor)
    return ActorRole(
        number=number,
        incarnation=incarnation,
        envs=envs,
        actor=actor,
        selector=selector,
        priorities=FirstPriorities(_sample_kind(spec), envs=envs.num_envs) if has_priorities else None,
        state_rows=_state_rows(spec),
        weights=FlatWeights(network),
        published=published,
        fragment_steps=given(spec.actors.fragment_steps),
        sync_period_steps=given(spec.actors.sync_period_steps),
        max_abs_reward=spec.learner.max_abs_reward,
        terminal_on_life_loss=spec.env.terminal_on_life_loss,
        count_steps=count_steps,
    )


def sends_priorities(spec: Spec) -> bool:
    """Return whether actors send the first priorities of their steps.

    They compute TD errors of values. The priority of a distribution is its loss, which is on another scale,
    and Munchausen's TD error contains a bonus that may be larger than all the rest.
    """
    toggles = spec.toggles
    return toggles.prioritized and toggles.distribution == "none" and not toggles.munchausen


def _sample_kind(spec: Spec) -> SampleKind:
    n_step, gamma = spec.toggles.n_step, spec.learner.discount
    if not has_sequences(spec):
        return TransitionErrors(steps=n_step, gamma=gamma)
    loss = sequence_loss(spec)
    return SequenceErrors(
        steps=given(spec.replay.sequence_steps),
        period=given(spec.replay.sequence_period_steps),
        n_step=n_step,
        gamma=gamma,
        h=loss.h,
        h_inverse=loss.h_inverse,
        priority_mix=loss.priority_mix,
    )


def _state_rows(spec: Spec) -> StateRows:
    if not spec.replay.stored_state:
        return no_states
    return partial(
        burn_in_begins,
        burn_in=given(spec.replay.burn_in_steps),
        period=given(spec.replay.sequence_period_steps),
    )
