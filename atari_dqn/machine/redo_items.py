"""The memory that the search for dormant units needs."""

from __future__ import annotations

from atari_dqn.machine.items import Item, Place
from atari_dqn.machine.sizes import NetworkShape, scored_bytes
from atari_dqn.spec.schema import Spec

_STACKS = 2
"""Stacks of frames that the replay gathers for each state: a transition has the one after it too."""


def redo_items(spec: Spec, network: NetworkShape, replay: Place) -> tuple[Item, ...]:
    """Return the items of ReDo, which computes on the CPU: none without it.

    Nor are there any for a member of an earlier version's sweep, whose record lacks the number of states.
    """
    states = spec.learner.redo_states
    if states is None:
        return ()
    gathered = states * _STACKS * spec.env.stack_frames * spec.env.screen_size_pixels**2
    needed: dict[Place, int] = {"ram": scored_bytes(network, states=states)}
    needed[replay] = needed.get(replay, 0) + gathered
    return tuple(
        Item(place=place, name="search for dormant units", bytes=each, key="learner.redo_states")
        for place, each in needed.items()
    )
