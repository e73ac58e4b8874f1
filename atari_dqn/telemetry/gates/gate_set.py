"""All failure gates of a run: check records and return state changes as events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from atari_dqn.clock import Clock
from atari_dqn.telemetry.events import GateChanged, GateState
from atari_dqn.telemetry.gates.gate import Change, Gate, Measurement
from atari_dqn.telemetry.gates.period_gates import PeriodRecord
from atari_dqn.telemetry.gates.update_gates import UpdateRecord
from atari_dqn.types import StateDict


class Gates:
    """Passes each record to its gates, and returns an event for each gate that changes its state."""

    def __init__(
        self,
        clock: Clock,
        *,
        updates: Sequence[Gate[UpdateRecord]],
        periods: Sequence[Gate[PeriodRecord]],
        evaluations: Sequence[Gate[float]],
        replay: Sequence[Gate[float]],
    ) -> None:
        self._clock = clock
        self._updates, self._periods = tuple(updates), tuple(periods)
        self._evaluations, self._replay = tuple(evaluations), tuple(replay)

    @property
    def states(self) -> dict[str, GateState]:
        """The state of every gate by name."""
        return {name: gate.state for name, gate in self._by_name().items()}

    def check_update(self, record: UpdateRecord) -> list[GateChanged]:
        """Check the measurements of an update."""
        return [*self._check(self._updates, record, prefix=f"update {record.update:,}: ")]

    def check_period(self, record: PeriodRecord) -> list[GateChanged]:
        """Check the measurements of a period."""
        return [*self._check(self._periods, record)]

    def check_evaluation(self, mean_return: float) -> list[GateChanged]:
        """Check the mean return of a full evaluation."""
        return [*self._check(self._evaluations, mean_return)]

    def check_replay(self, effective_share: float) -> list[GateChanged]:
        """Check the effective sample size as a share of the transitions."""
        return [*self._check(self._replay, effective_share)]

    def not_ok(self) -> list[GateChanged]:
        """Return an event for each gate that is not `ok`, for sinks that missed the state change."""
        return [
            self._event(gate, Change(state=gate.state, value=gate.value, message=f"still {gate.message()}"))
            for gate in self._by_name().values()
            if gate.state != "ok"
        ]

    def state_dict(self) -> StateDict:
        """Return the state of every gate."""
        return {name: gate.state_dict() for name, gate in self._by_name().items()}

    def load_state_dict(self, state: StateDict) -> None:
        """Load the state of every gate."""
        for name, gate in self._by_name().items():
            gate.load_state_dict(state[name])

    def _check(
        self, gates: Sequence[Gate[Measurement]], record: Measurement, *, prefix: str = ""
    ) -> Iterator[GateChanged]:
        for gate in gates:
            change = gate.check(record)
            if change is not None:
                yield self._event(gate, change, prefix)

    def _event(self, gate: Gate[Any], change: Change, prefix: str = "") -> GateChanged:
        return GateChanged(
            gate=gate.name,
            state=change.state,
            step=self._clock.steps,
            env_frames=self._clock.env_frames,
            message=prefix + change.message,
            value=change.value,
            threshold=gate.threshold,
        )

    def _by_name(self) -> dict[str, Gate[Any]]:
        gates: tuple[Gate[Any], ...] = (*self._updates, *self._evaluations, *self._replay, *self._periods)
        return {gate.name: gate for gate in gates}
