"""The memory that actors need, and whether a machine has cores for them."""

from __future__ import annotations

from atari_dqn.errors import UserError
from atari_dqn.formatting import plural
from atari_dqn.machine.items import Item
from atari_dqn.machine.sizes import ACTOR_BYTES, message_bytes
from atari_dqn.spec.constraints import given
from atari_dqn.spec.schema import Spec


def actor_bytes(weights_bytes: int) -> int:
    """Compute the memory of one actor's process, with its network."""
    return ACTOR_BYTES + weights_bytes


def messages_item(spec: Spec) -> Item:
    """Return the item for messages on their way."""
    processes = given(spec.actors.processes)
    steps = given(spec.actors.fragment_steps) * spec.env.num_envs // processes
    waiting = processes * (spec.actors.max_messages_in_flight or 1)
    messages = waiting * message_bytes(steps=steps, screen_size_pixels=spec.env.screen_size_pixels)
    return Item(place="ram", name="messages of actors", bytes=messages, key="actors.fragment_steps")


def actor_items(spec: Spec, weights_bytes: int, *, actors_here: bool) -> tuple[Item, ...]:
    """Return the items for messages on their way, and for the processes of actors on this machine.

    The evaluator of free-running actors is a process of the learner's machine wherever these play.
    """
    if spec.actors.mode == "none":
        return ()
    items = [messages_item(spec)]
    each = actor_bytes(weights_bytes)
    if spec.actors.mode == "free_running":
        items.append(Item(place="ram", name="evaluator", bytes=each))
    if actors_here:
        own = given(spec.actors.processes) * each
        items.append(Item(place="ram", name="actors", bytes=own, key="actors.processes"))
    return tuple(items)


def cores_for_actors(spec: Spec) -> int:
    """Compute the fewest cores on which the actors of a spec may play; 0 without actors."""
    if spec.actors.mode == "none":
        return 0
    return -(-given(spec.actors.processes) // given(spec.system.actors_per_core))


def check_cores(spec: Spec, cores: int, *, has_begun: bool = False) -> None:
    """Raise a `UserError` if the machine has too few cores for the actors.

    `has_begun`: whether the run has begun, and therefore keeps its spec.
    """
    if cores_for_actors(spec) > cores:
        room = f"{plural(cores, 'core')} for {plural(given(spec.system.actors_per_core), 'actor')} each"
        remedy = "lower the first, or raise the second to let actors share cores"
        if has_begun:
            remedy = (
                f"resume it on {plural(cores_for_actors(spec), 'core')}, or with --on ray: "
                "a run that has begun keeps its spec"
            )
        raise UserError(
            f"actors.processes is {spec.actors.processes}, and this machine has {room} "
            f"(system.actors_per_core); {remedy}"
        )
