"""What every benchmark's JSON says about where and when it was measured."""

import platform
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import atari_dqn
from atari_dqn import wait_variables
from atari_dqn.fast.cpu.library import instruction_set
from atari_dqn.machine.contention import contention, read_core_times
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.run.provenance import git_state, versions

_BEGAN = read_core_times()


def circumstances() -> dict[str, object]:
    """Collect date, commit, system, hardware, waiting of threads, the kernels' instruction set and versions.

    `others_cores`: the cores that other programs used on average from the import of this module until now; a
    benchmark calls this after its measurement. None if too little time has passed.
    """
    others = contention(_BEGAN, read_core_times())
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "git": git_state(Path(atari_dqn.__file__).parent),
        "system": platform.system(),
        "hardware": asdict(find_hardware(Path.cwd())),
        "others_cores": others and round(others.others_cores, 2),
        "threads_wait": wait_variables(),
        "instruction_set_of_kernels": instruction_set(),
        "versions": versions(),
    }
