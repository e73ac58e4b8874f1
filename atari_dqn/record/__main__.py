"""Render a recording in a process of its own: `python -m atari_dqn.record RECORDING.json [PARENT_PID]`.

With PARENT_PID the process exits when its parent does. The encoder runs as a library within it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import cv2

from atari_dqn.envs.processes import end_with_parent
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.record.recording import load_recording
from atari_dqn.record.video_rendering import render

_LOWEST_PRIORITY = 19


def main(path: Path, parent: int | None) -> int:
    """Render the video of a recording next to it, at the lowest priority, and return the exit code."""
    end_with_parent(parent)
    os.nice(_LOWEST_PRIORITY)
    cv2.setNumThreads(1)
    try:
        render(load_recording(path), path.with_suffix(".mp4"))
    except (UserError, DamagedError) as error:
        print(error, file=sys.stderr)  # noqa: T201 - read by the parent process
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] and sys.argv[2] else None))
