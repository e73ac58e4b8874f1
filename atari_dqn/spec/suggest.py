"""Suggestions for misspelt names, as the end of an error message."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from types import MappingProxyType

SYNONYMS = MappingProxyType(
    {
        "lr": "optimizer.learning_rate",
        "optimizer.eps": "optimizer.epsilon",
        "gamma": "learner.discount",
        "discount_factor": "learner.discount",
        "batch": "learner.batch_size",
        "tau": "learner.target_rate",
        "target_update": "learner.target_period_updates",
        "target_update_period": "learner.target_period_updates",
        "target_update_frequency": "learner.target_period_updates",
        "target_update_interval": "learner.target_period_updates",
        "train_frequency": "learner.update_period_steps",
        "train_freq": "learner.update_period_steps",
        "gradient_clip": "learner.max_grad_norm",
        "reward_clip": "learner.max_abs_reward",
        "replay.size": "replay.capacity_steps",
        "buffer_size": "replay.capacity_steps",
        "replay_size": "replay.capacity_steps",
        "memory_size": "replay.capacity_steps",
        "learning_starts": "replay.prefill_steps",
        "frame_stack": "env.stack_frames",
        "action_repeat": "env.frame_skip",
        "frames": "training.total_frames",
        "total_timesteps": "training.total_frames",
        "multi_step": "toggles.n_step",
    }
)
"""Usual names of other programs, with a section or in any, and our keys."""

_SIMILAR, _LESS_SIMILAR, _SIMILAR_ELSEWHERE = 0.7, 0.6, 0.8
"""Lowest similarity of last parts: in the same section, before and after an exact match in another section is
tried, and in another section."""


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return `; did you mean "…"?` with the candidate closest to `word`; empty if none is close."""
    near = difflib.get_close_matches(word, list(candidates), n=1)
    return f'; did you mean "{near[0]}"?' if near else ""


def did_you_mean_key(name: str, known: Iterable[str]) -> str:
    """Return a suggestion with the known dotted key that `name` may stand for; empty if there is none."""
    found = _nearest_key(name, list(known))
    return f'; did you mean "{found}"?' if found else ""


def _nearest_key(name: str, known: list[str]) -> str | None:
    """Find the key that a name may stand for: by synonym, or by the spelling of its last part.

    Keys of the same section come first, unless another section has exactly this last part.
    """
    section, _, leaf = name.rpartition(".")
    synonym = SYNONYMS.get(name.lower(), SYNONYMS.get(leaf.lower()))
    if synonym in known:
        return synonym
    # of two sections with the same last part, the first in the schema's order counts
    elsewhere = {other.rpartition(".")[2]: other for other in reversed(known)}
    siblings = {last: f"{section}.{last}" for last in elsewhere if f"{section}.{last}" in known}
    same = {leaf: elsewhere[leaf]} if leaf in elsewhere else {}
    for candidates, cutoff in (
        (siblings, _SIMILAR),
        (same, 1.0),
        (siblings, _LESS_SIMILAR),
        (elsewhere, _SIMILAR_ELSEWHERE),
    ):
        near = difflib.get_close_matches(leaf, candidates, n=1, cutoff=cutoff)
        if near:
            return candidates[near[0]]
    if siblings:  # the section exists: a key that resembles the whole name would be of an unrelated part
        return None
    return next(iter(difflib.get_close_matches(name, known, n=1)), None)
