"""Whether a run has a target network."""

from __future__ import annotations

from atari_dqn.spec.schema import Spec


def is_own_target(spec: Spec) -> bool:
    """Return whether the online network is its own target, because it would be copied after every update."""
    return spec.learner.target_period_updates == spec.learner.target_rate == 1
