"""Rules on the keys of the network."""

from __future__ import annotations

import math

from atari_dqn.spec.rule import Rule

_IMPALA_STRIDE = 8
"""The stride of the convolutions of `impala` together."""


def _has_hidden_layer(hidden_units: int, memory: str, dueling: bool) -> bool:
    return hidden_units > 0 or (memory != "none" and not dueling)


NETWORK_RULES = (
    Rule(
        ("network.kind", "network.memory"),
        lambda kind, memory: kind != "nature_layer_norm" or memory == "none",
        'its hidden layer is normalised, and a recurrent layer takes its place: choose "nature"',
    ),
    Rule(
        ("network.spectral_norm", "learner.target_rate"),
        lambda is_normalized, rate: not is_normalized or rate == 1.0,
        "singular vectors are copied to the target network, not averaged: set the second to 1",
    ),
    Rule(
        ("network.layer_norm", "network.memory"),
        lambda is_normalized, memory: not is_normalized or memory == "none",
        "the hidden layer is normalised, and a recurrent layer takes its place: set the first to false",
    ),
    Rule(
        ("network.hidden_units", "network.kind"),
        lambda units, kind: kind != "nature_layer_norm" or units >= 2,
        "a single unit, less its mean, is always 0: raise the first",
        applies_to_existing_runs=False,
    ),
    Rule(
        ("network.hidden_units", "network.layer_norm"),
        lambda units, is_normalized: not is_normalized or units >= 2,
        "a single unit, less its mean, is always 0: raise the first",
        applies_to_existing_runs=False,
    ),
    Rule(
        ("network.pool_size", "env.screen_size_pixels"),
        lambda pool, pixels: pool <= math.ceil(pixels / _IMPALA_STRIDE),
        f"the last feature map has a side of ⌈screen_size_pixels / {_IMPALA_STRIDE}⌉, and pooling must not "
        "enlarge it: lower the first",
        applies_to_existing_runs=False,
    ),
    Rule(
        ("network.hidden_units", "network.memory", "toggles.dueling"),
        _has_hidden_layer,
        "only a network with memory and without dueling streams may have no hidden layer: raise the first",
    ),
)
