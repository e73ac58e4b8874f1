"""The name under which the literature knows a combination of toggles."""

from __future__ import annotations

from atari_dqn.spec.schema import Toggles

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
