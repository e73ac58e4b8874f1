"""Report measures of an agent's memory with each row of replay_log, without changing state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from atari_dqn.agent.memory import RecurrentQNetwork
from atari_dqn.agent.network import QNetwork
from atari_dqn.assembly.sequence_parts import sequence_loss
from atari_dqn.replay.groups import GroupedReplay
from atari_dqn.replay.later_states import LaterStates
from atari_dqn.replay.sampling import Sampling
from atari_dqn.rng import torch_seed
from atari_dqn.spec.schema import Spec
from atari_dqn.telemetry.columns import column_names
from atari_dqn.telemetry.events import Row
from atari_dqn.train.learning import Learning
from atari_dqn.train.memory_measures import Measure, Staleness, StepErrors, state_norm

_PLACE = ("step", "env_frames")
_NAMES = tuple(name for name in column_names("memory_log") if name not in _PLACE)


def memory_logs(training: Learning, spec: Spec) -> tuple[MemoryLog, ...]:
    """Make the report of an agent with memory; none for other agents."""
    if spec.network.memory == "none":
        return ()
    return (MemoryLog(training, memory_measures(spec, training.replay), seed=spec.seed),)


def memory_measures(spec: Spec, replay: Sampling[Any]) -> tuple[Measure, ...]:
    """Make the measures of a memory. Staleness is one of states that the replay stores."""
    measures: tuple[Measure, ...] = (state_norm, StepErrors(sequence_loss(spec)))
    sequences: Any = replay.groups[0] if isinstance(replay, GroupedReplay) else replay
    if sequences.states is None:
        return measures
    later = LaterStates(
        replay,
        sequences.states,
        length=sequences.length,
        burn_in=sequences.burn_in,
        period=sequences.period,
    )
    return (*measures, Staleness(later.gather, later.positions))


class MemoryLog:
    """Computes a row of memory_log for each row of replay_log, from one minibatch sampled for it.

    Each row uses a random stream of its own, named by its step.
    """

    def __init__(self, training: Learning, measures: Sequence[Measure], *, seed: int) -> None:
        self._training, self._measures, self._seed = training, tuple(measures), seed

    def row(self, replay_row: Row) -> Row:
        """Compute the row of the same step; NaN for what the agent has not, and while nothing is sampled."""
        place = {name: replay_row.values[name] for name in _PLACE}
        nothing = dict.fromkeys(_NAMES, math.nan)
        found = self._report() if self._training.replay.num_transitions else {}
        return Row(table="memory_log", values=place | nothing | found)

    @torch.inference_mode()
    def _report(self) -> dict[str, float]:
        training = self._training
        seed = torch_seed(self._seed, "memory report", training.clock.steps)
        indices, weights = training.replay.sample_for_diagnostics(
            1, env_frames=training.schedule_frames, seed=seed
        )
        batch = training.replay.minibatch(indices[0], weights[0]).to(training.device)
        online, target = _recurrent(training.learner.online), _recurrent(training.learner.target)
        return {
            name: float(value)
            for measure in self._measures
            for name, value in measure(online, target, batch).items()
        }


def _recurrent(network: QNetwork) -> RecurrentQNetwork:
    assert isinstance(network, RecurrentQNetwork)
    return network
