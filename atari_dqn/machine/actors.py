"""The memory that actors need, and whether a machine has cores for them."""

from __future__ import annotations

from atari_dqn.errors import UserError
from atari_dqn.machine.items import Item
from atari_dqn.machine.sizes import ACTOR_BYTES, message_bytes
from atari_dqn.spec.constraints import given
from atari_dqn.spec.schema import Spec


def actor_items(spec: Spec, weights_bytes: int) -> tuple[Item, ...]:
    """Return the items for the processes of actors, their networks, and messages on their way."""
    if spec.actors.mode == "none":
        return ()
    processes = given(spec.actors.processes)
    steps = given(spec.actors.fragment_steps) * spec.env.num_envs // processes
    waiting = processes * (spec.actors.max_messages_in_flight or 1)
    messages = waiting * message_bytes(steps=steps, screen_size_pixels=spec.env.screen_size_pixels)
    own = ACTOR_BYTES + weights_bytes
    return (
        Item(place="ram", name="actors", bytes=processes * own, key="actors.processes"),
        Item(place="ram", name="messages of actors", bytes=messages, key="actors.fragment_steps"),
    )


def check_cores(spec: Spec, cores: int) -> None:
    """Raise a `UserError` if the machine has too few cores for the actors."""
    if spec.actors.mode == "none":
        return
    processes, each = given(spec.actors.processes), given(spec.system.actors_per_core)
    if processes > cores * each:
        raise UserError(
            f"actors.processes is {processes}, and this machine has {cores} cores for {each} actors each "
            "(system.actors_per_core); lower the first, or raise the second to let actors share cores"
        )
