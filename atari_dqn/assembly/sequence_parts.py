"""Make the parts of agents that learn from sequences: networks with memory, the loss and the replay."""

from __future__ import annotations

from torch import nn

from atari_dqn.agent import rules
from atari_dqn.agent.heads import Head
from atari_dqn.agent.memory import MEMORIES, RecurrentQNetwork
from atari_dqn.agent.sequence_loss import SequenceTDLoss, rescaled, unchanged, unrescaled
from atari_dqn.agent.unroll import EachStack, Unroll, UnrollMemory
from atari_dqn.assembly.torso import make_torso
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.sampler import Sampler
from atari_dqn.replay.sequences import SequenceReplay, sequence_ring_rows, state_slots
from atari_dqn.replay.states import StateTable
from atari_dqn.spec.constraints import decided, given
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo

_RULES = {"huber": rules.huber, "mse": rules.mse}


def recurrent_network(spec: Spec, info: GameInfo, head_type: type[Head]) -> RecurrentQNetwork:
    """Make a network with memory, without initial weights.

    Its hidden layer follows the memory, so the torso has none of its own.
    """
    torso = make_torso(spec, info, layer=lambda *_: nn.Identity())
    units, has_inputs = given(spec.network.memory_units), given(spec.network.memory_inputs)
    num_inputs = torso.num_encoded + (1 + info.num_actions if has_inputs else 0)
    features = spec.network.hidden_units * head_type.streams
    return RecurrentQNetwork(
        torso,
        MEMORIES[spec.network.memory](num_inputs, units),
        nn.Sequential(nn.Linear(units, features), nn.ReLU()) if features else nn.Identity(),
        head_type(features or units, info.num_actions),
        num_actions=info.num_actions,
        has_inputs=has_inputs,
        precision=decided(spec.learner.precision),
    )


def has_sequences(spec: Spec) -> bool:
    """Return whether the agent of a spec learns from sequences."""
    return spec.replay.kind == "sequences"


def make_unroll(spec: Spec) -> Unroll:
    """Make what applies the network of a spec to sequences."""
    return EachStack() if spec.network.memory == "none" else UnrollMemory()


def sequence_loss(spec: Spec) -> SequenceTDLoss:
    """Make the loss of sequences."""
    is_rescaled = given(spec.learner.value_rescaling)
    return SequenceTDLoss(
        unroll=make_unroll(spec),
        is_double=spec.toggles.double,
        rule=_RULES[given(spec.learner.loss)],
        is_mean=spec.learner.sequence_reduction == "mean",
        priority_mix=given(spec.replay.priority_mix) if spec.toggles.prioritized else 0.0,
        h=rescaled if is_rescaled else unchanged,
        h_inverse=unrescaled if is_rescaled else unchanged,
    )


def sequence_rows(spec: Spec) -> int:
    """Compute the rows of a ring of sequences."""
    return sequence_ring_rows(
        capacity_steps=spec.replay.capacity_steps,
        envs=spec.env.num_envs,
        stack=spec.env.stack_frames,
        burn_in=given(spec.replay.burn_in_steps),
        length=given(spec.replay.sequence_steps),
    )


def sequence_replay(
    spec: Spec, ring: FrameRing, sampler: Sampler, states: StateTable | None
) -> SequenceReplay:
    """Make the replay of sequences on a ring."""
    return SequenceReplay(
        ring,
        sampler,
        length=given(spec.replay.sequence_steps),
        burn_in=given(spec.replay.burn_in_steps),
        period=given(spec.replay.sequence_period_steps),
        n_step=spec.toggles.n_step,
        gamma=spec.learner.discount,
        max_abs_reward=spec.learner.max_abs_reward,
        state_width=state_width(spec),
        states=states,
    )


def state_width(spec: Spec) -> int:
    """Return the number of values in the recurrent state of an environment; 0 without memory."""
    if spec.network.memory == "none":
        return 0
    return MEMORIES[spec.network.memory].states * given(spec.network.memory_units)


def state_table(spec: Spec, ring: FrameRing) -> StateTable | None:
    """Make the table of recurrent states at the rows of a ring; None where sequences begin from zero."""
    if not spec.replay.stored_state:
        return None
    slots = state_slots(rows=ring.rows, period=given(spec.replay.sequence_period_steps))
    return StateTable(
        rows=ring.rows,
        num_envs=spec.env.num_envs,
        slots=slots,
        width=state_width(spec),
        device=ring.device,
    )
