"""Keys that were added or renamed since earlier versions, whose runs still have to be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atari_dqn.spec.keys import KEYS, Scalar, Values

ADDED: dict[str, Scalar] = {
    "toggles.noisy": False,
    "toggles.distribution": "none",
    "toggles.random_shifts": False,
    "toggles.munchausen": False,
    "toggles.self_prediction": False,
    "toggles.resets": False,
    "toggles.annealing": False,
    "toggles.redo": False,
    "env.life_loss_ends_skip": False,
    "env.flicker_probability": 0.0,
    "exploration.kind": "linear",
    "exploration.epsilon_off_frames": 0,
    "actors.mode": "none",
    "replay.kind": "transitions",
    "network.hidden_units": 512,
    "network.memory": "none",
    "network.shared_hidden": False,
    "network.spectral_norm": False,
    "network.pool_size": 0,
    "network.layer_norm": False,
    "learner.accumulate": 1,
    "learner.deterministic": True,
    "learner.compile": False,
    "learner.updates_per_period": 1,
    "learner.target_rate": 1.0,
    "learner.acting_network": "online",
    "learner.munchausen_network": "target",
    "optimizer.weight_decay": 0.0,
    "checkpoint.period_frames": 1_000_000,
    "checkpoint.period_seconds": 600.0,
    "checkpoint.keep_best": 1,
    "checkpoint.replay": True,
    "checkpoint.on_full_disk": "stop",
    "replay.beta_end": 1.0,
    "replay.priority": "kl",
    "replay.weight_maximum": "replay",
    "gates.min_effective_share": 0.02,
    "system.evaluation_video": False,
    "system.evaluation_workers": 0,
    "system.cuda_graphs": True,
}
"""Added keys, each with the value that reproduces the behaviour of earlier versions.

Every key that is added to the schema must be added here, to `FORMERLY_SHARED`, or to `FORMERLY_RECORDED`.
"""
FORMERLY_SHARED = {"learner.redo_states": "learner.batch_size"}
"""Added keys in place of which earlier versions used the value of another key. With this value they are left
out of a digest."""
LEFT_OUT_OF_DIGESTS = frozenset(
    {
        "env.flicker_probability",
        "exploration.kind",
        "exploration.epsilon_off_frames",
        "actors.mode",
        "replay.kind",
        "replay.weight_maximum",
        "network.memory",
        "network.spectral_norm",
        "network.pool_size",
        "network.layer_norm",
        "toggles.self_prediction",
        "toggles.resets",
        "toggles.annealing",
        "toggles.redo",
        "network.shared_hidden",
        "learner.updates_per_period",
        "learner.target_rate",
        "learner.acting_network",
        "learner.munchausen_network",
        "optimizer.weight_decay",
    }
)
"""Added keys that are left out of a digest where they have their value in `ADDED`: specs that do not use them
keep their digests. Earlier additions changed the digests of all later runs."""
FORMERLY_RECORDED = {"learner.threads": "torch_threads"}
"""Added keys whose values earlier versions recorded in provenance.json, each with its entry there."""
RENAMED = {
    "env.lanes": "env.num_envs",
    "system.evaluation_lanes": "system.evaluation_envs",
}
"""Former names of keys, each with the current one. Specs may use either."""
_FORMER_NAMES = {new: former for former, new in RENAMED.items()}


def current_name(key: str) -> str:
    """Return the current name of a key, which may be given by a former one."""
    return RENAMED.get(key, key)


def original_name(key: str) -> str:
    """Return the first name that a key had. Digests use it, so that renaming a key changes no digest."""
    return _FORMER_NAMES.get(key, key)


def is_new_and_unused(key: str, values: Values) -> bool:
    """Return whether a key has no place in a digest: it was added, and has the value of earlier versions."""
    if key in FORMERLY_SHARED:
        return values[key] == values.get(FORMERLY_SHARED[key])
    return key in LEFT_OUT_OF_DIGESTS and values[key] == ADDED[key]


def without_ineffective(values: Values) -> Values:
    """Replace the values of a recorded spec that are refused now because they never had an effect.

    Nothing was ever captured of sequences, rollouts, annealing and actors, where `system.cuda_graphs` could
    be true.
    """
    never_captured = (
        values.get("replay.kind") in ("sequences", "rollouts")
        or values.get("toggles.annealing")
        or values.get("actors.mode", "none") != "none"
    )
    if never_captured and values.get("system.cuda_graphs"):
        return {**values, "system.cuda_graphs": False}
    return values


def with_added_keys(values: Values, provenance: Mapping[str, Any]) -> dict[str, Scalar]:
    """Add to the values of an existing run's spec the keys that are newer, in the schema's order.

    `provenance`: the run's provenance.json, which has the values that were no keys then.
    """
    recorded = {key: provenance[entry] for key, entry in FORMERLY_RECORDED.items() if entry in provenance}
    added = {**ADDED, **recorded}
    complete = dict(values)
    for key, value in added.items():  # in order: a key may belong to the value of one that was added before
        if key not in complete and KEYS[key].applies(complete):
            complete[key] = value
    for key, other in FORMERLY_SHARED.items():
        if key not in complete and other in complete and KEYS[key].applies(complete):
            complete[key] = complete[other]
    effective = without_ineffective(complete)
    return {key: effective[key] for key in KEYS if key in effective}
