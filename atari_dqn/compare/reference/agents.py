"""Map the values of a spec to the name of the agent in the literature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from atari_dqn.compare.reference.match import Subject
from atari_dqn.formatting import setting
from atari_dqn.spec.iteration import iteration_frames
from atari_dqn.spec.keys import Values, flatten
from atari_dqn.spec.protocol import evaluation_protocol
from atari_dqn.spec.schema import Spec, Toggles

_KNOWN = {
    (False, False, False): "dqn",
    (True, False, False): "double_dqn",
    (False, False, True): "prioritized_dqn",
    (True, False, True): "prioritized_ddqn",
    (False, True, False): "dueling_dqn",
    (True, True, False): "dueling_ddqn",
    (False, True, True): "prioritized_dueling_dqn",
    (True, True, True): "prioritized_dueling_ddqn",
}
"""Names by the toggles double, dueling and prioritized."""
RAINBOW = Toggles(
    double=True,
    dueling=True,
    prioritized=True,
    n_step=3,
    noisy=True,
    distribution="c51",
    random_shifts=False,
    munchausen=False,
    self_prediction=False,
    resets=False,
    annealing=False,
    redo=False,
)
"""Hessel et al. (2018)."""


_DISTRIBUTIONAL = {
    ("none", True, False): "m_dqn",
    ("c51", False, False): "c51",
    ("hl_gauss", False, False): "hl_gauss",
    ("qr_dqn", False, False): "qr_dqn",
    ("iqn", False, False): "iqn",
    ("iqn", True, False): "m_iqn",
    ("none", False, True): "noisy_dqn",
}
"""Names by distribution, munchausen and noisy; double, dueling and prioritized are off."""


_NEWER = ("noisy", "munchausen", "random_shifts", "self_prediction", "resets", "annealing", "redo")

_WITH_MEMORY = {("dqn", "lstm"): "drqn", ("prioritized_dueling_ddqn, 5-step", "lstm"): "r2d2"}
"""Names by the name without memory, and the memory. Hausknecht & Stone (2015), Kapturowski et al. (2019)."""

_NATURE: Values = {"env.stack_frames": 4, "network.hidden_units": 512}
_PUBLISHED_NETWORKS: dict[str, Values] = {
    "nature": {**_NATURE, "network.shared_hidden": False},
    "dopamine": _NATURE,
    "impala": {
        **_NATURE,
        "network.shared_hidden": False,
        "network.width": 1,
        "network.spectral_norm": False,
        "network.pool_size": 0,
        "network.layer_norm": False,
    },
}
"""The kinds of networks that agents in scores.csv have, with the keys that must agree, where they apply."""


def agent_name(values: Values) -> str:
    """Return the name of the agent of a spec as in scores.csv: `double_dqn`, `rainbow`, `drqn`, `pqn`.

    A combination without a name has its extra toggles after the nearest name: `double_dqn, 3-step`. A network
    that is not the one of the published agents follows: `dqn, impala`, `dqn, stack_frames=1`.
    """
    toggles: dict[str, Any] = {field.name: values[f"toggles.{field.name}"] for field in fields(Toggles)}
    named = _name_by_toggles(Toggles(**toggles))
    memory = str(values["network.memory"])
    if values["replay.kind"] == "rollouts":
        named = "pqn, dueling" if toggles["dueling"] else "pqn"
    elif memory != "none":
        named = _WITH_MEMORY.get((named, memory), f"{named}, {memory}")
    elif values["replay.kind"] == "sequences":
        named = f"{named}, sequences"
    return ", ".join([named, *_other_network(values)])


def _name_by_toggles(toggles: Toggles) -> str:
    if replace(toggles, n_step=RAINBOW.n_step) == RAINBOW:
        return "rainbow" if toggles == RAINBOW else f"rainbow, {toggles.n_step}-step"
    older = (toggles.double, toggles.dueling, toggles.prioritized)
    newer = (toggles.distribution, toggles.munchausen, toggles.noisy)
    further = (
        toggles.random_shifts,
        toggles.self_prediction,
        toggles.resets,
        toggles.annealing,
        toggles.redo,
    )
    if not any((*older, *further)) and newer in _DISTRIBUTIONAL:
        names = [_DISTRIBUTIONAL[newer]]
    else:
        names = [_KNOWN[older], *_newer_toggles(toggles)]
    return ", ".join(names + ([] if toggles.n_step == 1 else [f"{toggles.n_step}-step"]))


def _newer_toggles(toggles: Toggles) -> list[str]:
    """Return the names of the enabled toggles that are not double, dueling or prioritized."""
    on = [name for name in _NEWER if getattr(toggles, name)]
    return on if toggles.distribution == "none" else [toggles.distribution, *on]


def _other_network(values: Values) -> Iterator[str]:
    """Yield the kind of a network if it is not the usual one, and keys whose values no published agent has.

    The size of a network with memory is not compared: no figure in scores.csv is of one.
    """
    kind = str(values["network.kind"])
    if kind not in _usual_kinds(values):
        yield kind
    if values["network.memory"] == "none":
        usual = _PUBLISHED_NETWORKS.get(kind, {})
        differing = (key for key in usual if values.get(key, usual[key]) != usual[key])
        yield from (f"{key.rpartition('.')[2]}={setting(values[key])}" for key in differing)


def _usual_kinds(values: Values) -> tuple[str, ...]:
    """Return the kinds of networks that need no mention in the name of an agent.

    Dopamine's network is that of Mnih et al. (2015) with padding, but both dueling streams share a layer.
    """
    if values["replay.kind"] == "rollouts":
        return ("nature_layer_norm",)
    return ("nature",) if values["toggles.dueling"] else ("nature", "dopamine")


def subject_of(spec: Spec) -> Subject:
    """Return the game, agent and protocol of the evaluations of a run."""
    protocol = evaluation_protocol(
        spec, episodes=spec.evaluation.full_episodes, checkpoint="current", ale_version="", rom_md5=""
    )
    values = flatten(spec)
    return Subject(
        game=spec.game,
        agent=agent_name(values),
        protocol=protocol,
        late_frames=iteration_frames(values),
    )
