"""The items of a plan for the learner and the replay."""

from __future__ import annotations

from atari_dqn.machine.items import Item, Place
from atari_dqn.machine.key_of_weights import key_of_weights
from atari_dqn.machine.redo_items import redo_items
from atari_dqn.machine.sizes import (
    EMBEDDING_COSINES,
    MEMORY_STATES,
    SEQUENCE_BYTES_PER_STEP,
    NetworkShape,
    minibatch_bytes,
    network_bytes,
    replay_bytes,
    sequences_bytes,
    states_bytes,
    unfolded_bytes,
)
from atari_dqn.spec.constraints import given
from atari_dqn.spec.schema import Spec
from atari_dqn.spec.target import is_own_target

NETWORKS = 2
"""The online network and the target network."""
_GRADIENTS = 1
"""Gradients of the online network."""
OPTIMIZER_BUFFERS = 2
"""Numbers that the plan counts for each weight. `torch_rmsprop` with momentum stores a third: not counted."""


def learner_items(spec: Spec, num_actions: int, place: Place) -> tuple[Item, ...]:
    """Return the items of what learns, on the learner's device."""
    network = network_shape(spec, num_actions)
    per_weight = _networks_in_memory(spec) + _GRADIENTS + OPTIMIZER_BUFFERS
    return (
        Item(
            place=place,
            name="networks and optimizer",
            bytes=network_bytes(network) * per_weight,
            key=key_of_weights(spec, network),
        ),
        Item(
            place=place,
            name="minibatch",
            bytes=_minibatch_bytes(spec, network, place),
            key="learner.batch_size",
        ),
    )


def replay_items(spec: Spec, place: Place) -> tuple[Item, ...]:
    """Return the items of the replay and of the recurrent states at the starts of sequences."""
    return (
        Item(place=place, name="replay", bytes=stored_bytes(spec), key="replay.capacity_steps"),
        *state_items(spec, place),
    )


def stored_bytes(spec: Spec) -> int:
    """Compute the bytes of a full replay without recurrent states."""
    steps = spec.replay.capacity_steps
    if spec.replay.kind != "sequences":
        return replay_bytes(capacity_steps=steps, screen_size_pixels=spec.env.screen_size_pixels)
    # in each environment the rows of one sequence with its burn-in and its first stack, as its ring has them
    before = given(spec.replay.burn_in_steps) + spec.env.stack_frames - 1
    steps += spec.env.num_envs * (before + given(spec.replay.sequence_steps))
    stored = replay_bytes(capacity_steps=steps, screen_size_pixels=spec.env.screen_size_pixels)
    return stored + SEQUENCE_BYTES_PER_STEP * steps


def state_items(spec: Spec, place: Place) -> tuple[Item, ...]:
    """Return the item for the recurrent states at the starts of sequences."""
    if not spec.replay.stored_state:
        return ()
    stored = states_bytes(
        capacity_steps=spec.replay.capacity_steps,
        num_envs=spec.env.num_envs,
        period=given(spec.replay.sequence_period_steps),
        width=MEMORY_STATES[spec.network.memory] * given(spec.network.memory_units),
    )
    return (Item(place=place, name="recurrent states", bytes=stored, key="replay.capacity_steps"),)


def bytes_on_gpu(spec: Spec, num_actions: int) -> int:
    """Compute what a run needs of a GPU that stores its replay, next to CUDA itself."""
    network = network_shape(spec, num_actions)
    items = (
        *replay_items(spec, "vram"),
        *learner_items(spec, num_actions, "vram"),
        *redo_items(spec, network, "vram"),
    )
    return sum(item.bytes for item in items if item.place == "vram")


def network_shape(spec: Spec, num_actions: int) -> NetworkShape:
    """Return the properties of a spec's network that determine its number of weights."""
    values, is_implicit = spec.distribution, spec.toggles.distribution == "iqn"
    return NetworkShape(
        kind=spec.network.kind,
        screen_size_pixels=spec.env.screen_size_pixels,
        stack_frames=spec.env.stack_frames,
        num_actions=num_actions,
        hidden_units=spec.network.hidden_units,
        width=spec.network.width or 1,
        pool_size=spec.network.pool_size or 0,
        layer_norm=bool(spec.network.layer_norm),
        dueling=spec.toggles.dueling,
        noisy=spec.toggles.noisy,
        outputs=values.num_atoms or values.num_quantiles or 1,
        cosines=EMBEDDING_COSINES if is_implicit else 0,
        memory=spec.network.memory,
        memory_units=spec.network.memory_units or 0,
        memory_inputs=bool(spec.network.memory_inputs),
        shared_hidden=bool(spec.network.shared_hidden),
        self_prediction=spec.toggles.self_prediction,
    )


def _minibatch_bytes(spec: Spec, network: NetworkShape, place: Place) -> int:
    steps = given(spec.replay.sequence_steps) if spec.replay.kind == "sequences" else 1
    images = spec.learner.batch_size // spec.learner.accumulate * steps
    unfolded = unfolded_bytes(network, images=images) if place == "vram" else 0
    if spec.replay.kind == "sequences":
        steps += given(spec.replay.burn_in_steps)
        return unfolded + sequences_bytes(
            network, batch_size=spec.learner.batch_size, parts=spec.learner.accumulate, frames=steps + 1
        )
    values = spec.distribution
    predicted = values.num_fractions or values.num_quantiles or 0
    compared_with = values.num_target_fractions or values.num_quantiles or 0
    return unfolded + minibatch_bytes(
        network,
        batch_size=spec.learner.batch_size,
        parts=spec.learner.accumulate,
        fractions=max(
            values.num_fractions or 0, values.num_target_fractions or 0, values.num_policy_fractions or 0
        ),
        pairs=predicted * compared_with,
        are_shifted=spec.toggles.random_shifts,
        predicted_steps=spec.learner.self_prediction_steps or 0,
    )


def _networks_in_memory(spec: Spec) -> int:
    """Return the number of networks, which is 1 if the online network is its own target."""
    return 1 if is_own_target(spec) else NETWORKS
