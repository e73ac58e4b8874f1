"""Render recordings out of a training's way: `python -m atari_dqn.record RECORDING.json`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import cv2

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.record.recording import load_recording
from atari_dqn.record.render import render

_LOWEST_PRIORITY = 19


def main(path: Path) -> int:
    """Make the video of a recording beside it, at the lowest priority, and return the exit code."""
    os.nice(_LOWEST_PRIORITY)
    cv2.setNumThreads(1)
    try:
        render(load_recording(path), path.with_suffix(".mp4"))
    except (UserError, DamagedError) as error:
        print(error, file=sys.stderr)  # noqa: T201 - the process that started this one reads it
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
