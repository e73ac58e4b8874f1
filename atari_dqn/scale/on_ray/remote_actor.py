"""What runs on a node for an actor: a Ray actor, which obeys the same orders as an actor's process does.

Arguments and results are plain values and bytes. Ray runs `obey` in one thread, call after call, and
`steps_played` in another one, so that the learner learns how far a fragment is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import ray

from atari_dqn.actors.snapshot import checksum_of
from atari_dqn.spec.keys import Values, build

if TYPE_CHECKING:
    from atari_dqn.actors.role import ActorRole

Snapshot = tuple[int, int, list[Any]]
"""Version, checksum, and in a list the reference of the weights, which are read only to fetch them."""


class FetchedWeights:
    """Implements `Published` with the snapshot that came with the newest order."""

    def __init__(self) -> None:
        self.snapshot: Snapshot = (-1, 0, [])

    def fetch(self, least_version: int) -> tuple[int, np.ndarray]:
        """Return the version and its weights; `ValueError` if they were damaged on their way."""
        version, checksum, (reference,) = self.snapshot
        assert version >= least_version, "the learner publishes weights before those of actors are too old"
        in_store: Any = ray.get(reference)
        weights: np.ndarray = in_store.copy()
        if checksum != checksum_of(version, weights):
            raise ValueError(f"the weights of version {version} were damaged on their way")
        return version, weights


@ray.remote(concurrency_groups={"counting": 1})  # type: ignore[call-overload]
class RemoteActor:
    """An actor on a node. Its role is made by the first order, in the thread that plays."""

    def __init__(self, values: Values, number: int, incarnation: int) -> None:
        self._values, self._number, self._incarnation = dict(values), number, incarnation
        self._published, self._steps = FetchedWeights(), 0
        self._role: ActorRole | None = None

    @ray.method(num_returns=2)
    def obey(self, order: bytes, snapshot: Snapshot) -> tuple[int, bytes]:
        """Carry out an order; return the number of steps played so far, and the answer."""
        from atari_dqn.actors.process import carry_out

        self._published.snapshot = snapshot
        self._role = self._role or self._made()
        answer = carry_out(self._role, order)
        return self._steps, answer

    @ray.method(concurrency_group="counting")
    def steps_played(self) -> int:
        """Return the number of steps played so far."""
        return self._steps

    def _made(self) -> ActorRole:
        from atari_dqn.actors.build import build_role
        from atari_dqn.actors.process import prepare_process

        prepare_process()
        return build_role(
            build(self._values),
            self._number,
            self._published,
            incarnation=self._incarnation,
            count_steps=self._count,
        )

    def _count(self, steps: int) -> None:
        self._steps += steps
