"""What a spec's scores are scores of, and the name under which the literature knows its toggles."""

from __future__ import annotations

from atari_dqn.protocol import evaluation_protocol
from atari_dqn.reference.match import Subject
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
"""By double, dueling, prioritized."""


def agent_name(toggles: Toggles) -> str:
    """Return the agent's name as the tables of figures have it: `double_dqn`, `prioritized_ddqn`.

    Returns over several steps are said behind it, `double_dqn, n = 3`: no table has such an agent.
    """
    name = _KNOWN[toggles.double, toggles.dueling, toggles.prioritized]
    return name if toggles.n_step == 1 else f"{name}, n = {toggles.n_step}"


def subject_of(spec: Spec) -> Subject:
    """Return what the evaluations of a run are scores of."""
    protocol = evaluation_protocol(
        spec, episodes=spec.evaluation.full_episodes, checkpoint="current", ale_version="", rom_md5=""
    )
    return Subject(game=spec.game, agent=agent_name(spec.toggles), protocol=protocol)
