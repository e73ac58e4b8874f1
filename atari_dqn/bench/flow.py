r"""A model of the flow between actors and their learner, in closed form, from a few measured constants.

Steps are agent steps; an actor plays L environments, a message has m steps of it, u updates follow each step.

    actors    supply = min(N, cores · shared) · rate            what they would play if nothing held them
    learner   1 / (receiving / m + u · (update + publishing))   what it can store and learn from
    network   bandwidth / (bytes / m)                           what reaches it

The slowest of them decides, because the limiter holds u and messages in flight are bounded. On one machine
all of them share its cores, which is one bound more. What is not the slowest waits: its share of waiting is
one minus the ratio of the flow to what it could do.
"""

from __future__ import annotations

from dataclasses import dataclass

FRAME_SKIP = 4


@dataclass(frozen=True, kw_only=True)
class FlowConstants:
    """What is measured: each on a core of its own, while the other cores work as well."""

    actor_steps_per_second: float
    """Steps of one actor, over all of its environments."""
    envs_per_actor: int
    message_steps: int
    """Steps of all environments of an actor in a message."""
    message_bytes: int
    receiving_seconds: float
    """The learner's time to read, check and store a message."""
    update_seconds: float
    updates_per_step: float
    publishing_seconds: float
    publish_period_updates: int
    sync_period_steps: int
    """Steps of one environment after which weights are fetched."""
    messages_in_flight: int
    bytes_per_second: float
    """What the network, or a pipe, carries."""
    actor_cores: int | None = None
    """Cores that the actors share; None if each has its own."""
    shared_cores: int | None = None
    """Cores of a machine that actors and learner share; None if the learner has its own."""
    learner_threads: int = 1
    """Cores that an update takes."""


@dataclass(frozen=True, kw_only=True)
class Flow:
    """What the model predicts for a number of actors."""

    actors: int
    steps_per_second: float
    bound: str
    """What is saturated: `actors`, `learner`, `network`, or `cores`."""
    learner_waits: float
    """Share of the time in which the learner waits for messages, or for a core."""
    actors_wait: float
    """Share of the time in which actors wait for orders, or for a core."""
    lag_seconds: float
    """Mean age of the weights that selected an action, when its step is stored."""
    lag_updates: float

    @property
    def frames_per_second(self) -> float:
        """Emulator frames per second."""
        return self.steps_per_second * FRAME_SKIP


def predict(constants: FlowConstants, actors: int) -> Flow:
    """Predict the flow of a number of actors."""
    c = constants
    cores = actors if c.actor_cores is None else min(actors, c.actor_cores)
    supply = cores * c.actor_steps_per_second
    learner_seconds = _learner_seconds(c)
    bounds = {
        "actors": supply,
        "learner": 1 / learner_seconds,
        "network": c.bytes_per_second * c.message_steps / c.message_bytes,
    }
    if c.shared_cores is not None:
        updating = c.updates_per_step * c.update_seconds * (c.learner_threads - 1)
        core_seconds = 1 / c.actor_steps_per_second + learner_seconds + updating
        bounds["cores"] = c.shared_cores / core_seconds
    bound = min(bounds, key=lambda name: bounds[name])
    steps = bounds[bound]
    seconds = _lag_seconds(c, actors, steps)
    return Flow(
        actors=actors,
        steps_per_second=steps,
        bound=bound,
        learner_waits=1 - steps * learner_seconds,
        actors_wait=1 - steps / supply,
        lag_seconds=seconds,
        lag_updates=seconds * steps * c.updates_per_step,
    )


def _learner_seconds(c: FlowConstants) -> float:
    """Compute the learner's time for each step."""
    publishing = c.publishing_seconds / c.publish_period_updates
    return c.receiving_seconds / c.message_steps + c.updates_per_step * (c.update_seconds + publishing)


def _lag_seconds(c: FlowConstants, actors: int, steps: float) -> float:
    """Compute the mean age of weights when a step is stored that was played with them.

    It is half a period of publications, half of what a period of fetches has beyond a message, and the time
    since the step: half a message, if actors play all the time. An actor that waits plays as soon as it is
    ordered to, and the message is stored when all that the actor has open are.
    """
    updates = steps * c.updates_per_step
    published = c.publish_period_updates / updates / 2 if updates else 0.0
    message = c.message_steps * actors / steps  # seconds between two messages of an actor
    fetched = max(0.0, c.sync_period_steps * c.envs_per_actor * actors / steps - message) / 2
    if steps < actors * c.actor_steps_per_second * 0.999:  # it waits
        since = c.messages_in_flight * message - c.message_steps / c.actor_steps_per_second / 2
    else:
        since = message / 2
    return published + fetched + since
