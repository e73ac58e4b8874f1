"""What every benchmark's JSON says about where and when it was measured."""

import platform
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from atari_dqn import wait_variables
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.run.provenance import versions


def circumstances() -> dict[str, object]:
    """Return date, host, hardware, how threads wait for one another, and versions as plain data."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "system": platform.system(),
        "hardware": asdict(find_hardware(Path.cwd())),
        "threads_wait": wait_variables(),
        "versions": versions(),
    }
