"""Make the torso of a network from a spec."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from atari_dqn.agent.torsos import Torso
from atari_dqn.assembly.registries import NETWORKS
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo

_KEYS = ("width", "spectral_norm", "pool_size", "layer_norm")
"""The keys of the section `network` that only some kinds of torso have."""


def make_torso(spec: Spec, info: GameInfo, **settings: Any) -> Torso:
    """Make a torso of the kind that the spec names. `settings`: its arguments that depend on the agent."""
    keys = asdict(spec.network)
    of_kind = {name: keys[name] for name in _KEYS if keys[name] is not None}
    make = NETWORKS.load(spec.network.kind)
    with NETWORKS.using(spec.network.kind):
        torso = make(stack=spec.env.stack_frames, frame_shape=info.frame_shape, **of_kind, **settings)
        if not isinstance(torso, Torso):
            raise TypeError(f"found {type(torso).__name__}, expected a Torso")
    return torso
