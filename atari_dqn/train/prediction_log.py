"""What the network predicts as rows, beside those of the replay. Looking changes no state."""

from __future__ import annotations

import math
from statistics import fmean

from atari_dqn.agent.diagnostics import NAMES, prediction_report
from atari_dqn.rng import torch_seed
from atari_dqn.telemetry.events import Row
from atari_dqn.train.training import Training

MINIBATCHES = 8
"""Minibatches drawn for a report: 256 transitions at 32 each."""


class PredictionLog:
    """Yields a row of prediction_log for each of replay_log, of transitions drawn as minibatches are.

    Each draws from a stream of its own, named by its step.
    """

    def __init__(self, training: Training, *, seed: int) -> None:
        self._training, self._seed = training, seed

    def row(self, beside: Row) -> Row:
        """Return the row of the same step; NaN in it while nothing can be sampled."""
        place = {name: beside.values[name] for name in ("step", "env_frames")}
        return Row(table="prediction_log", values=place | self._report())

    def _report(self) -> dict[str, float]:
        training = self._training
        replay = training.replay
        if not replay.num_transitions:
            return dict.fromkeys(NAMES, math.nan)
        seed = torch_seed(self._seed, "prediction report", training.clock.steps)
        cells, weights = replay.look(MINIBATCHES, env_frames=training.schedule_frames, seed=seed)
        # one after the other: 256 states at an implicit network's 32 fractions would take hundreds of MB
        batches = (replay.minibatch(*drawn).to(training.device) for drawn in zip(cells, weights, strict=True))
        reports = [prediction_report(training.learner.online, batch.s_tm1, batch.a_tm1) for batch in batches]
        return {name: fmean(report[name] for report in reports) for name in NAMES}
