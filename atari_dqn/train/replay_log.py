"""Report diagnostics of the replay once every period, without changing state."""

from __future__ import annotations

from collections.abc import Iterator

from atari_dqn.clock import Every
from atari_dqn.replay.diagnostics import replay_report
from atari_dqn.rng import torch_seed
from atari_dqn.telemetry.events import Row, Value
from atari_dqn.train.learning import Learning
from atari_dqn.types import StateDict


class ReplayLog:
    """Computes rows of replay_log. Each uses a random stream of its own, named by its step."""

    def __init__(self, training: Learning, *, seed: int, period_steps: int) -> None:
        self._training, self._seed = training, seed
        self._period = Every(period=period_steps)

    def rows(self) -> Iterator[Row]:
        """Yield a row if a period has ended."""
        if self._period.due(self._training.clock.steps):
            yield self._row()

    def _row(self) -> Row:
        clock, replay = self._training.clock, self._training.replay
        seed = torch_seed(self._seed, "replay report", clock.steps)
        report = replay_report(replay, env_frames=self._training.schedule_frames, seed=seed)
        place: dict[str, Value] = {"step": clock.steps, "env_frames": clock.env_frames}
        return Row(table="replay_log", values=place | report)

    def state_dict(self) -> StateDict:
        """Return the number of reported periods."""
        return self._period.state_dict()

    def load_state_dict(self, state: StateDict) -> None:
        """Load the number of reported periods."""
        self._period.load_state_dict(state)
