"""How many pictures a second `dqn play` shows in a terminal of 80 × 24, of an agent at the emulator's speed.

The terminal is a pseudo-terminal whose output is read at once; a picture begins where the cursor goes home.

    python benchmarks/play_rate.py RUN --seconds 20 --out FILE
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

from hardware import circumstances

HOME = b"\x1b[H"
PROGRAM = "from atari_dqn.cli import main; main()"


def pictures(run: Path, seconds: float) -> tuple[int, float]:
    """Return how many pictures were shown, and in how many seconds from the first on."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm-256color"}
    command = [sys.executable, "-c", PROGRAM, "play", str(run), "--episodes", "100", "--no-save"]
    program = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    count, began = 0, None
    try:
        while began is None or time.monotonic() - began < seconds:
            if not select.select([ours], [], [], 60.0)[0]:
                sys.exit("dqn play shows nothing")
            count += os.read(ours, 65_536).count(HOME)
            if count and began is None:
                began = time.monotonic()
        return count, time.monotonic() - began
    finally:
        program.send_signal(signal.SIGINT)
        program.wait()
        os.close(ours)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run, a checkpoint or an archive")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    chosen = parser.parse_args()
    count, seconds = pictures(chosen.run, chosen.seconds)
    report = {
        **circumstances(),
        "pictures": count,
        "seconds": seconds,
        "pictures_per_second": count / seconds,
    }
    chosen.out.write_text(json.dumps(report, indent=1) + "\n")
    print(f"{count / seconds:.1f} pictures/s")


if __name__ == "__main__":
    main()
