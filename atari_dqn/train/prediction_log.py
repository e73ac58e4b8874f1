"""Report diagnostics of the network's predictions with each row of replay_log, without changing state."""

from __future__ import annotations

import math
from statistics import fmean

from atari_dqn.agent.diagnostics import NAMES
from atari_dqn.rng import torch_seed
from atari_dqn.telemetry.events import Row
from atari_dqn.train.learning import Learning

MINIBATCHES = 8
"""Number of minibatches sampled for a report: 256 transitions at 32 each."""


class PredictionLog:
    """Computes a row of prediction_log for each row of replay_log, from transitions sampled like minibatches.

    Each row uses a random stream of its own, named by its step.
    """

    def __init__(self, training: Learning, *, seed: int) -> None:
        self._training, self._seed = training, seed

    def row(self, replay_row: Row) -> Row:
        """Compute the row of the same step; NaN while nothing can be sampled."""
        place = {name: replay_row.values[name] for name in ("step", "env_frames")}
        return Row(table="prediction_log", values=place | self._report())

    def _report(self) -> dict[str, float]:
        training = self._training
        replay = training.replay
        if not replay.num_transitions:
            return dict.fromkeys(NAMES, math.nan)
        seed = torch_seed(self._seed, "prediction report", training.clock.steps)
        indices, weights = replay.sample_for_diagnostics(
            MINIBATCHES, env_frames=training.schedule_frames, seed=seed
        )
        # separately: 256 states with the 32 fractions of IQN would take hundreds of MB
        batches = (
            replay.minibatch(*sample).to(training.device) for sample in zip(indices, weights, strict=True)
        )
        online = training.learner.online
        reports = [training.diagnostics.prediction_report(online, batch) for batch in batches]
        return {name: fmean(report[name] for report in reports) for name in NAMES}
