"""The evaluation protocols of the tracks by name, so that a checkpoint can be scored under each of them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from atari_dqn.errors import UserError
from atari_dqn.spec.keys import build, flatten
from atari_dqn.spec.schema import Spec
from atari_dqn.spec.tracks import load_track

ProtocolName = Literal["run", "classic", "modern"]
"""`run`: that of the run's spec; `classic`: Mnih et al. (2015); `modern`: Machado et al. (2018)."""

_PROTOCOL_TRACKS: Mapping[str, str] = MappingProxyType({"classic": "A", "modern": "B"})
"""The track that defines each named protocol."""

PROTOCOL_KEYS = (
    "env.sticky_probability",
    "env.noop_max_frames",
    "evaluation.epsilon",
    "evaluation.max_episode_frames",
)
"""The keys that a protocol sets. Actions, frame skip and preprocessing stay those of the agent's training."""


def with_protocol(spec: Spec, name: ProtocolName) -> Spec:
    """Return the spec with the named evaluation protocol. The result is for evaluation, not for training.

    Raise `UserError` for an unknown name.
    """
    if name == "run":
        return spec
    if name not in _PROTOCOL_TRACKS:
        names = ", ".join(("run", *_PROTOCOL_TRACKS))
        raise UserError(f"protocol: found {name!r}, expected one of {names}")
    track = load_track(_PROTOCOL_TRACKS[name])
    return build(flatten(spec) | {key: track[key] for key in PROTOCOL_KEYS})
