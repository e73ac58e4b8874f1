"""The schedule of ε, from the section `exploration` of a spec."""

from __future__ import annotations

from atari_dqn.schedule import EpsilonSpectrum, LinearSchedule, SwitchedOff
from atari_dqn.spec.schema import Spec

EpsilonSchedule = LinearSchedule | SwitchedOff | EpsilonSpectrum


def exploration_of(spec: Spec) -> EpsilonSchedule:
    """Return the schedule of ε, whose frames are counted from the end of the prefill."""
    keys = spec.exploration
    if keys.kind == "spectrum":
        assert keys.spectrum_base is not None
        assert keys.spectrum_exponent is not None
        return EpsilonSpectrum(
            base=keys.spectrum_base, exponent=keys.spectrum_exponent, num_envs=spec.env.num_envs
        )
    assert keys.kind == "linear"
    assert keys.epsilon_start is not None
    assert keys.epsilon_end is not None
    assert keys.epsilon_decay_frames is not None
    linear = LinearSchedule(
        start=keys.epsilon_start, end=keys.epsilon_end, decay_frames=keys.epsilon_decay_frames
    )
    return SwitchedOff(linear, keys.epsilon_off_frames) if keys.epsilon_off_frames else linear


def mixed_epsilon(exploration: EpsilonSchedule) -> str:
    """Return the range of ε as text if it differs between environments, else an empty text.

    The returns of such training episodes are no score: they are a mix of policies.
    """
    return str(exploration) if isinstance(exploration, EpsilonSpectrum) else ""
