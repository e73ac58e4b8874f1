"""The section of the schema for actors in processes of their own. See schema.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from atari_dqn.spec.constraints import AtLeast, Unless, When

_WITH_ACTORS = Unless("actors.mode", "none")
_FREE = When("actors.mode", "free_running")


@dataclass(frozen=True, kw_only=True)
class Actors:
    """Actors that play in processes of their own, with copies of the network, and one learner.

    Horgan et al. (2018).
    """

    mode: Literal["none", "lockstep", "free_running"]
    """`none`: the learner's process selects all actions, with the newest weights. `lockstep`: actors play one
    after the other, while the learner waits, so that a run repeats and resumes exactly; for tests.
    `free_running`: actors and learner work at the same time, Horgan et al. (2018)."""
    processes: Annotated[int | None, AtLeast(1), _WITH_ACTORS]
    """Number of actors. Each plays `env.num_envs` / `actors.processes` environments. 360 in Horgan et al.
    (2018), 256 in Kapturowski et al. (2019), with one environment each."""
    fragment_steps: Annotated[int | None, AtLeast(1), _WITH_ACTORS]
    """Steps of each environment in a message to the learner. 50 in Horgan et al. (2018)."""
    sync_period_steps: Annotated[int | None, AtLeast(1), _WITH_ACTORS]
    """Steps of an environment after which its actor fetches the newest weights, at the start of a message.
    400 frames in Horgan et al. (2018), 400 steps in Kapturowski et al. (2019)."""
    publish_period_updates: Annotated[int | None, AtLeast(1), _WITH_ACTORS]
    """Updates between publications of the weights, which actors fetch."""
    max_lag_updates: Annotated[int | None, AtLeast(1), _WITH_ACTORS]
    """Largest number of updates that an actor's weights may be behind the learner's when a message is
    ordered; an actor whose weights are older fetches new ones before it plays that message, whatever the
    period. Up to `actors.max_messages_in_flight` - 1 messages that were ordered earlier are played first."""
    max_messages_in_flight: Annotated[int | None, AtLeast(1), _FREE]
    """Number of messages that an actor may play ahead of the learner; then it waits."""
    error_buffer_steps: Annotated[int | None, AtLeast(1), _FREE]
    """Steps that may be stored before, or after, the updates that `learner.update_period_steps` declares for
    them: beyond that, actors wait for the learner, or the learner for the actors."""
