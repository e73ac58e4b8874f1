"""Keys that were added or renamed after runs had been made: how the specs of such runs are read."""

from __future__ import annotations

from atari_dqn.spec.keys import KEYS, Scalar, Values

ADDED: dict[str, Scalar] = {
    "toggles.noisy": False,
    "toggles.distribution": "none",
    "toggles.random_shifts": False,
    "toggles.munchausen": False,
    "env.life_loss_ends_skip": False,
    "network.hidden_units": 512,
    "learner.accumulate": 1,
    "learner.deterministic": True,
    "learner.compile": False,
    "checkpoint.period_frames": 1_000_000,
    "checkpoint.period_seconds": 600.0,
    "checkpoint.keep_best": 1,
    "checkpoint.replay": True,
    "checkpoint.on_full_disk": "stop",
    "replay.beta_end": 1.0,
    "replay.priority": "kl",
    "gates.min_effective_share": 0.02,
    "system.evaluation_video": False,
    "system.evaluation_workers": 0,
    "system.cuda_graphs": True,
}
"""New keys, each with the value at which an earlier run goes on as it was. A new key must be entered here."""
RENAMED = {
    "env.lanes": "env.num_envs",
    "system.evaluation_lanes": "system.evaluation_envs",
}
"""Keys by their former names. Specs that have them are read as before."""
_FORMER = {new: former for former, new in RENAMED.items()}


def current_name(key: str) -> str:
    """Return a key's present name."""
    return RENAMED.get(key, key)


def first_name(key: str) -> str:
    """Return the name that a key had at first, by which digests know it: renaming a key moves no digest."""
    return _FORMER.get(key, key)


def brought_up_to_date(values: Values) -> dict[str, Scalar]:
    """Return the values of a run's own spec with those added since, in the schema's order."""
    missing = {key: value for key, value in ADDED.items() if key not in values and KEYS[key].applies(values)}
    complete = {**missing, **values}
    return {key: complete[key] for key in KEYS if key in complete}
