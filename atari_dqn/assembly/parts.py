"""Make the parts of an agent and its replay from a spec: each toggle selects a part here, once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial

import torch

from atari_dqn.agent.actor import Actor
from atari_dqn.agent.augmentation import Augment, RandomShifts, not_augmented
from atari_dqn.agent.diagnostics import Diagnostics, SequenceDiagnostics, TransitionDiagnostics
from atari_dqn.agent.heads import DuelingHead, Head, LinearHead, SharedDuelingHead
from atari_dqn.agent.init import initialize
from atari_dqn.agent.lambda_returns import lambda_return_target
from atari_dqn.agent.learner import Learner
from atari_dqn.agent.losses import LossFn
from atari_dqn.agent.memory import RecurrentQNetwork
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.noisy import NoisyLinear
from atari_dqn.agent.recurrent_actor import RecurrentActor
from atari_dqn.agent.self_prediction import FutureShifts
from atari_dqn.agent.spectral import power_iteration
from atari_dqn.agent.targets import MunchausenTarget, TargetRule, double_dqn_target, dqn_target
from atari_dqn.agent.torsos import Torso
from atari_dqn.agent.value_kinds import VALUE_KINDS, Settings, ValueKind
from atari_dqn.agent.weight_decay import normalization_weights
from atari_dqn.assembly.acceleration import Backend, make_backend
from atari_dqn.assembly.data_efficient_parts import (
    self_prediction_loss,
    self_predictive,
    upkeep,
)
from atari_dqn.assembly.registries import LOSSES, OPTIMIZERS
from atari_dqn.assembly.sequence_parts import (
    has_sequences,
    make_unroll,
    recurrent_network,
    sequence_loss,
)
from atari_dqn.assembly.torso import make_torso
from atari_dqn.machine.denormals import flush_denormals
from atari_dqn.rng import numpy_stream, torch_seed
from atari_dqn.spec.constraints import decided, given
from atari_dqn.spec.schema import Spec
from atari_dqn.spec.schema_agent import Optimizer
from atari_dqn.spec.target import is_own_target
from atari_dqn.types import Environments, GameInfo


def build_network(
    spec: Spec, info: GameInfo, device: torch.device, backend: Backend | None = None
) -> QNetwork:
    """Make the network, with initial weights from the run's random stream "network".

    From then on denormal numbers are 0 in this process (docs/decisions/0029-denormal-numbers-are-zero.md).
    """
    flush_denormals()
    # Initialized on the CPU, so that a run begins with the same weights on every device.
    network = initial_network(spec, info, "network")
    backend = backend or make_backend(device, compiled=decided(spec.learner.compile))
    return backend.network(network.to(device))


def initial_network(spec: Spec, info: GameInfo, *stream: str | int) -> QNetwork:
    """Make a network with initial weights from a random stream of the run."""
    generator = torch.Generator().manual_seed(torch_seed(spec.seed, *stream))
    network = _network(spec, info)
    initialize(network, init=spec.network.init, generator=generator)
    if isinstance(network, RecurrentQNetwork):
        network.memory.initialize(generator)
    return network


def _network(spec: Spec, info: GameInfo) -> QNetwork:
    """Make the network of the kind of value distribution, or the one with memory."""
    if spec.network.memory != "none":
        return recurrent_network(spec, info, _head_type(spec))
    network = _value_kind(spec).network(partial(_torso_and_head, spec, info), _settings(spec))
    return self_predictive(spec, info, network) if spec.toggles.self_prediction else network


def build_actor(
    spec: Spec, envs: Environments, network: QNetwork, device: torch.device, *name: str | int
) -> Actor:
    """Make the actor of a training. `name` continues the names of its random streams, if it has several."""
    make: Callable[..., Actor] = Actor
    if isinstance(network, RecurrentQNetwork):
        make = partial(RecurrentActor, max_abs_reward=spec.learner.max_abs_reward)
    return make(
        network,
        envs=envs.num_envs,
        num_actions=envs.info.num_actions,
        stack=spec.env.stack_frames,
        frame_shape=envs.info.frame_shape,
        stream=numpy_stream(spec.seed, "policy", *name),
        generator=device_stream(spec, device, "noise", *name),
    )


def build_diagnostics(spec: Spec) -> Diagnostics:
    """Make the diagnostics of a network on minibatches."""
    return SequenceDiagnostics(make_unroll(spec)) if has_sequences(spec) else TransitionDiagnostics()


def _value_kind(spec: Spec) -> ValueKind:
    kind = spec.toggles.distribution
    return VALUE_KINDS["scalar" if kind == "none" else kind]


def _settings(spec: Spec) -> Settings:
    """Collect the settings of the value distribution from the spec."""
    values = {key: value for key, value in asdict(spec.distribution).items() if value is not None}
    if spec.replay.priority is not None:  # None for uniform replay
        values["priority"] = spec.replay.priority
    return Settings(precision=decided(spec.learner.precision), **values)


def _torso_and_head(spec: Spec, info: GameInfo, size: int) -> tuple[Torso, Head]:
    """Make a torso, and a head with `size` outputs per action."""
    layers = {}
    if spec.toggles.noisy:
        layers["layer"] = partial(NoisyLinear, sigma=given(spec.network.noisy_sigma))
    head_type = _head_type(spec)
    torso = make_torso(
        spec, info, streams=head_type.streams, hidden_units=spec.network.hidden_units, **layers
    )
    return torso, head_type(torso.num_features, info.num_actions, size, **layers)


def _head_type(spec: Spec) -> type[Head]:
    if not spec.toggles.dueling:
        return LinearHead
    # Dopamine's dueling network has one hidden layer for both streams; a spec of `dopamine` lacks the key
    is_shared = spec.network.shared_hidden or spec.network.kind == "dopamine"
    return SharedDuelingHead if is_shared else DuelingHead


def build_optimizer(network: QNetwork, optimizer: Optimizer) -> torch.optim.Optimizer:
    """Make the optimizer from the keys that its kind has."""
    values = {key: value for key, value in asdict(optimizer).items() if key != "kind" and value is not None}
    if optimizer.weight_decay:
        values["not_decayed"] = normalization_weights(network)
    return OPTIMIZERS.load(optimizer.kind)(network.parameters(), **values)


def build_learner(
    spec: Spec, info: GameInfo, device: torch.device, backend: Backend | None = None
) -> Learner:
    """Make the learner with its networks, optimizer and loss.

    If the target network is copied after every update, it is the online network itself.
    """
    backend = backend or make_backend(device, compiled=decided(spec.learner.compile))
    online = build_network(spec, info, device, backend)
    target = online if is_own_target(spec) else build_network(spec, info, device, backend)
    optimizer = backend.optimizer(build_optimizer(online, spec.optimizer))
    fresh = partial(initial_network, spec, info, "reset")  # of a reset's number and a network's name
    return backend.learner(
        online=online,
        target=target,
        optimizer=optimizer,
        loss=_loss(spec),
        reduction=spec.learner.reduction,
        accumulate=spec.learner.accumulate,
        max_grad_norm=spec.learner.max_grad_norm,
        target_period_updates=spec.learner.target_period_updates,
        generator=device_stream(spec, device, "learner"),
        augment=_augment(spec),
        target_rate=spec.learner.target_rate,
        upkeep=upkeep(spec, online=online, target=target, optimizer=optimizer, fresh=fresh),
        after_step=power_iteration(online),
    )


def acting_network(spec: Spec, learner: Learner) -> QNetwork:
    """Return the network that acts."""
    return learner.target if spec.learner.acting_network == "target" else learner.online


def device_stream(spec: Spec, device: torch.device, *name: str | int) -> torch.Generator:
    """Make a generator on a device, seeded by the run's seed and a stream's name."""
    return torch.Generator(device=device).manual_seed(torch_seed(spec.seed, *name))


def _target_rule(spec: Spec) -> TargetRule:
    if spec.toggles.munchausen:
        return MunchausenTarget(
            scale=given(spec.learner.munchausen_scale),
            temperature=given(spec.learner.munchausen_temperature),
            lowest=given(spec.learner.munchausen_lowest),
            bonus_of=given(spec.learner.munchausen_network),
        )
    if spec.replay.kind == "rollouts":
        return lambda_return_target
    # If both networks are one and it draws no random numbers, both rules compute the same: take the cheaper.
    is_random = spec.toggles.noisy or spec.toggles.distribution == "iqn"
    is_double = spec.toggles.double and (is_random or not is_own_target(spec))
    return double_dqn_target if is_double else dqn_target


def _augment(spec: Spec) -> Augment:
    if not spec.toggles.random_shifts:
        return not_augmented
    shifts = FutureShifts if spec.toggles.self_prediction else RandomShifts
    return shifts(
        shift_pixels=given(spec.learner.shift_pixels), intensity_scale=given(spec.learner.intensity_scale)
    )


def _loss(spec: Spec) -> LossFn:
    """Make the loss that the spec names for scalar values, or else the loss of the kind of distribution."""
    if has_sequences(spec):
        return sequence_loss(spec)
    target_rule, settings = _target_rule(spec), _settings(spec)
    if spec.learner.loss is None:
        loss = _value_kind(spec).loss(target_rule, settings)
    else:
        loss = _named_loss(spec.learner.loss, target_rule, settings)
    return self_prediction_loss(spec, loss) if spec.toggles.self_prediction else loss


def _named_loss(name: str, target_rule: TargetRule, settings: Settings) -> LossFn:
    make = LOSSES.load(name)
    with LOSSES.using(name):
        loss = make(target_rule, settings)
        if not callable(loss):
            raise TypeError(f"found {type(loss).__name__}, expected a LossFn")
    return loss
