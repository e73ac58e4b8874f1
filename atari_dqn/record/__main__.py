"""Render recordings out of a training's way: `python -m atari_dqn.record RECORDING.json [PARENT_PID]`.

With the parent's process id, this process ends when the parent does. The encoder is a library in it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import cv2

from atari_dqn.envs.processes import end_with_parent
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.record.recording import load_recording
from atari_dqn.record.render import render

_LOWEST_PRIORITY = 19


def main(path: Path, parent: int | None) -> int:
    """Make the video of a recording beside it, at the lowest priority, and return the exit code."""
    end_with_parent(parent)
    os.nice(_LOWEST_PRIORITY)
    cv2.setNumThreads(1)
    try:
        render(load_recording(path), path.with_suffix(".mp4"))
    except (UserError, DamagedError) as error:
        print(error, file=sys.stderr)  # noqa: T201 - the process that started this one reads it
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] and sys.argv[2] else None))
