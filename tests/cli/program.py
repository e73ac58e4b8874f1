"""The program as a user's shell starts it."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = (sys.executable, "-m", "atari_dqn")
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "COLUMNS": "80"}


def dqn(*arguments: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | ENVIRONMENT | environment,
    )
