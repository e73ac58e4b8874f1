"""The emulator frames between two moments at which a run can be evaluated or can end."""

from __future__ import annotations

from atari_dqn.spec.keys import Values


def iteration_frames(values: Values) -> int:
    """Compute the frames of an iteration: a step of all environments, or the message of one actor.

    An evaluation is late by less than this, and a run ends by less than this after its budget.
    """
    step_frames = int(values["env.num_envs"]) * int(values["env.frame_skip"])
    if values.get("actors.mode", "none") == "none":  # runs of earlier versions have no such key
        return step_frames
    return int(values["actors.fragment_steps"]) * step_frames // int(values["actors.processes"])
