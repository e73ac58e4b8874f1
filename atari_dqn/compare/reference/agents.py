"""Map the toggles of a spec to the name of the agent in the literature."""

from __future__ import annotations

from dataclasses import replace

from atari_dqn.compare.reference.match import Subject
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


def agent_name(toggles: Toggles) -> str:
    """Return the name of an agent as in scores.csv: `double_dqn`, `rainbow`, `m_iqn`.

    A combination without a name has its extra toggles after the nearest name: `double_dqn, 3-step`,
    `prioritized_ddqn, c51, noisy`.
    """
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


def subject_of(spec: Spec) -> Subject:
    """Return the game, agent and protocol of the evaluations of a run."""
    protocol = evaluation_protocol(
        spec, episodes=spec.evaluation.full_episodes, checkpoint="current", ale_version="", rom_md5=""
    )
    agent = "pqn" if spec.replay.kind == "rollouts" else agent_name(spec.toggles)
    return Subject(game=spec.game, agent=agent, protocol=protocol)
