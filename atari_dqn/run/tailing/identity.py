"""Read the identity of a run from its spec and provenance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from atari_dqn.files.documents import checked
from atari_dqn.formatting import printable
from atari_dqn.run.directory import RunDirectory
from atari_dqn.schedule import EpsilonSpectrum
from atari_dqn.spec.keys import Scalar
from atari_dqn.spec.recorded import spec_values

_MOST = 2**53
"""The largest count, which every JSON reader represents exactly."""


@dataclass(frozen=True, kw_only=True)
class Identity:
    """The game, seed, track and spec of a run. All text is printable."""

    game: str
    seed: int
    track: str
    track_label: str
    """The track, with a star if the run deviates from it."""
    deviations: tuple[str, ...]
    total_frames: int
    values: Mapping[str, Scalar]
    """The complete spec, by dotted key."""
    mixed_epsilon: str
    """The range of ε as text if it differs between environments, so that training returns are no score."""


_Count = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
_Base = Annotated[float, msgspec.Meta(gt=0, lt=1)]
_Exponent = Annotated[float, msgspec.Meta(ge=0)]


class _Spec(msgspec.Struct):
    """The keys of a recorded spec that `Identity` needs.

    The defaults are for keys that a linear schedule does not have; they are then not used.
    """

    game: str
    seed: _Count
    track: str
    total_frames: _Count = msgspec.field(name="training.total_frames")
    num_envs: _Count = msgspec.field(name="env.num_envs", default=1)
    exploration: str = msgspec.field(name="exploration.kind", default="linear")
    spectrum_base: _Base = msgspec.field(name="exploration.spectrum_base", default=0.4)
    spectrum_exponent: _Exponent = msgspec.field(name="exploration.spectrum_exponent", default=7.0)

    def mixed_epsilon(self) -> str:
        """Return the range of ε as text if it differs between environments."""
        if self.exploration != "spectrum" or self.num_envs < 2:
            return ""
        # The text states only the first and the last ε, which are those of two environments. Two, so that a
        # damaged `num_envs` does not give the size of an array.
        ends = EpsilonSpectrum(base=self.spectrum_base, exponent=self.spectrum_exponent, num_envs=2)
        return str(ends)


def identity_of(run: Path) -> Identity:
    """Read the identity of a run; raise `UserError` or `DamagedError` if its files are missing or invalid."""
    directory = RunDirectory(run)
    values = spec_values(directory.spec)
    spec = checked(directory.spec, values, _Spec)
    track = directory.read_provenance().get("track") or {}
    return Identity(
        game=spec.game,
        seed=spec.seed,
        track=spec.track,
        track_label=printable(track.get("label") or spec.track),
        deviations=tuple(map(printable, track.get("deviations", ()))),
        total_frames=spec.total_frames,
        values=values,
        mixed_epsilon=spec.mixed_epsilon(),
    )
