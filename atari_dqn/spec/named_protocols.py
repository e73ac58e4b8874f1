"""Named evaluation protocols: those of the tracks, so that one checkpoint can be scored under either."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from atari_dqn.spec.keys import build, flatten
from atari_dqn.spec.schema import Spec
from atari_dqn.spec.tracks import load_track

ProtocolName = Literal["run", "classic", "modern"]
"""`run`: as the run's own evaluations; `classic`: Mnih et al. (2015); `modern`: Machado et al. (2018)."""

TRACK_OF: Mapping[str, str] = MappingProxyType({"classic": "A", "modern": "B"})
"""The track whose protocol each name stands for."""

PROTOCOL_KEYS = (
    "env.sticky_probability",
    "env.noop_max_frames",
    "evaluation.epsilon",
    "evaluation.max_episode_frames",
)
"""What a protocol sets. Actions, frame skip and preprocessing are the agent's own: it knows no others."""


def under_protocol(spec: Spec, name: ProtocolName) -> Spec:
    """Return the spec with the evaluation protocol of that name; its training keys mean nothing then."""
    if name == "run":
        return spec
    track = load_track(TRACK_OF[name])
    return build(flatten(spec) | {key: track[key] for key in PROTOCOL_KEYS})
