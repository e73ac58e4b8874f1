"""Diagnose a machine: its hardware and software, what is missing, and recommended settings."""

from __future__ import annotations

import importlib
import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from atari_dqn.bench import probes
from atari_dqn.bench.advice import Setting, recommend, recommend_for
from atari_dqn.bench.probes import Check
from atari_dqn.errors import UserError
from atari_dqn.formatting import size
from atari_dqn.machine.contention import CoreTimes, contention, read_core_times
from atari_dqn.machine.hardware import Hardware, compiler_name, find_hardware, has_compiler
from atari_dqn.machine.plan import Plan, make_plan
from atari_dqn.machine.sizes import MOST_ACTIONS
from atari_dqn.run.provenance import versions
from atari_dqn.spec.keys import build
from atari_dqn.spec.tracks import load_track

if TYPE_CHECKING:  # it imports torch, which may be missing
    from atari_dqn.bench.update_times import UpdateTime

_COLUMNS = 80
_NARROW_INDENT = 4
_ADVICE = "recommended settings for this machine and the network of the DQN paper"
_LOAD_SECONDS = 0.4
"""The minimum time over which the load of other programs is measured."""
_LOADER_REMEDY = (
    "update the C++ runtime library (libstdc++) of this environment, or compile with a compiler of its own: "
    "pip install -e ."
)
_COMPILER_REMEDY = "install g++ 11 or newer, and read the output of: CC=gcc CXX=g++ pip install -v -e ."
_MIN_SHARED_MEMORY_BYTES = 64 * 10**6
"""The default of Docker for a container."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The result of `dqn doctor`."""

    checks: tuple[Check, ...]
    settings: tuple[Setting, ...]

    @property
    def healthy(self) -> bool:
        """Whether training can start on this machine."""
        return all(check.status != "fail" for check in self.checks)


def examine(path: Path, *, measured_seconds: float = 0.0) -> Diagnosis:
    """Diagnose this machine; a missing package is a failed check, not an exception.

    `path`: the folder of runs. If `measured_seconds` is above 0, updates are timed for so long and the
    settings follow from these times; a check reports if they were not timed, because runs use a GPU or cannot
    start.
    """
    before = read_core_times()
    hardware = find_hardware(path)
    checks = (*_checks(hardware), _load_check(before))
    if measured_seconds <= 0:
        return Diagnosis(checks=checks, settings=recommend(hardware, _has_kernels))
    obstacle = _obstacle_to_timing(checks, hardware)
    if obstacle:
        untimed = Check(name="update times", status="warn", text=f"not measured: {obstacle}")
        return Diagnosis(checks=(*checks, untimed), settings=recommend(hardware, _has_kernels))
    return Diagnosis(checks=checks, settings=recommend_for(_measure(hardware, measured_seconds), hardware))


def _obstacle_to_timing(checks: Sequence[Check], hardware: Hardware) -> str:
    """Return the reason not to time updates on the CPU; empty if there is none."""
    if any(check.status == "fail" for check in checks):
        return "fix the failed checks first"
    return "runs use the GPU" if hardware.gpus else ""


def _measure(hardware: Hardware, seconds: float) -> list[UpdateTime]:
    from atari_dqn.bench.update_times import measure_update_times

    precisions = ("fp32", "bf16") if hardware.fast_bf16 is not False else ("fp32",)
    return measure_update_times(precisions=precisions, cores=hardware.cores_usable, seconds=seconds)


def _has_kernels() -> bool:
    """Return whether kernels of products run here; False if torch, which loads them, is missing."""
    try:
        return bool(importlib.import_module("atari_dqn.assembly.acceleration").has_kernels())
    except (ImportError, OSError):
        return False


def diagnosis_text(diagnosis: Diagnosis, columns: int = _COLUMNS) -> str:
    """Format a diagnosis as plain text, for a terminal of some columns."""
    width = max(len(check.name) for check in diagnosis.checks)
    lines = [line for check in diagnosis.checks for line in _check_lines(check, width, columns)]
    lines += ["", *textwrap.wrap(_ADVICE, columns)]
    for setting in diagnosis.settings:
        lines += _lines_after(f"  {setting.key} = {setting.value}   ", setting.reason, columns)
    return "\n".join(lines)


def _check_lines(check: Check, name_width: int, columns: int) -> list[str]:
    head = f"{check.status:<5} {check.name:<{name_width}}  "
    lines = _lines_after(head, check.text, columns)
    if check.remedy:
        lines += _lines_after(_indent(head, columns) + "→ ", check.remedy, columns)
    return lines


def _lines_after(head: str, text: str, columns: int) -> list[str]:
    """Break a text into lines: the first after its head, the others below it."""
    found = textwrap.wrap(text, columns, initial_indent=head, subsequent_indent=_indent(head, columns))
    return found or [head]


def _indent(head: str, columns: int) -> str:
    """Return the indent of what is below a head; in a narrow terminal a small one leaves room for words."""
    return " " * (len(head) if len(head) <= columns // 2 else _NARROW_INDENT)


def _checks(hardware: Hardware) -> Iterator[Check]:
    yield _cpu_check(hardware)
    paper = _paper_plan(hardware)
    yield _memory_check(hardware, paper)
    yield _disk_check(hardware, paper)
    yield _shared_memory_check(hardware)
    yield _version_check()
    yield from (_run_probe(name, probe) for name, probe in _PROBES)
    yield _compiler_check()
    yield from _gpu_checks(hardware)


def _run_probe(name: str, probe: Callable[[], Check]) -> Check:
    """Run the probe of a package; return a failed check if the package is missing or broken."""
    try:
        return probe()
    except UserError as error:  # it names the remedy
        return Check(name=name, status="fail", text=str(error))
    except Exception as error:
        remedy = "install the package again with its dependencies: pip install -e ."
        return Check(name=name, status="fail", text=f"{type(error).__name__}: {error}", remedy=remedy)


def _cpu_check(hardware: Hardware) -> Check:
    flags = ", ".join(hardware.cpu_flags or ()) or "no vector extensions known"
    cores = f"{hardware.cores_usable} of {hardware.cores_logical} cores usable"
    return Check(name="CPU", status="ok", text=f"{hardware.cpu_model}; {cores}; {flags}")


def _compiler_check() -> Check:
    name = compiler_name()
    use = "learner.compile = true can be used; it helps small networks"
    text = f"{name}: {use}" if has_compiler() else f"no {name}: learner.compile = true cannot be used"
    return Check(name="C++ compiler", status="ok", text=text)


def _paper_plan(hardware: Hardware) -> Plan:
    """Return the plan of the paper's run on a CPU, with its replay of a million transitions."""
    spec = build({**load_track("A"), "game": "pong", "seed": 1, "system.workers": 0})
    return make_plan(spec, num_actions=MOST_ACTIONS, device="cpu", hardware=hardware)


def _memory_check(hardware: Hardware, paper: Plan) -> Check:
    text = f"{size(hardware.memory_available_bytes)} of {size(hardware.memory_bytes)} free"
    if hardware.memory_available_bytes >= paper.bytes("ram"):
        return Check(name="RAM", status="ok", text=text)
    remedy = f"the paper's replay needs {size(paper.bytes('ram'))} in all: lower replay.capacity_steps"
    return Check(name="RAM", status="warn", text=text, remedy=remedy)


def _disk_check(hardware: Hardware, paper: Plan) -> Check:
    text = f"{size(hardware.disk_free_bytes)} free"
    if hardware.disk_free_bytes >= paper.bytes("disk"):
        return Check(name="disk", status="ok", text=text)
    remedy = f"checkpoints of the paper's run need {size(paper.bytes('disk'))}: lower replay.capacity_steps"
    return Check(name="disk", status="warn", text=text, remedy=remedy)


def _load_check(before: CoreTimes) -> Check:
    """Check whether other programs have left enough cores for torch's threads since `before`."""
    time.sleep(max(0.0, before.at + _LOAD_SECONDS - time.monotonic()))
    found, threads = contention(before, read_core_times()), _torch_threads()
    assert found is not None, "the interval was long enough"
    if threads is None or threads == 1 or not found.leaves_too_few(threads):
        return Check(name="load", status="ok", text=str(found))
    remedy = (
        f"end them, or train with fewer threads: dqn train … --set learner.threads={found.suitable_threads}, "
        f"dqn resume RUN_DIR --threads {found.suitable_threads}"
    )
    text = f"{found}, and torch has {threads} threads, which then wait for one another"
    return Check(name="load", status="warn", text=text, remedy=remedy)


def _torch_threads() -> int | None:
    """Return the number of torch's threads; None if torch could not be imported."""
    torch = sys.modules.get("torch")
    return None if torch is None else int(torch.get_num_threads())


def _shared_memory_check(hardware: Hardware) -> Check:
    free = hardware.shared_memory_free_bytes
    if free is None:
        return Check(
            name="shared memory", status="ok", text="no folder to measure; the system grows it as needed"
        )
    if free > _MIN_SHARED_MEMORY_BYTES:
        return Check(name="shared memory", status="ok", text=f"{size(free)} free")
    remedy = "give the container more (docker run --shm-size=1g), or set system.workers = 0"
    return Check(name="shared memory", status="warn", text=f"{size(free)} free", remedy=remedy)


def _version_check() -> Check:
    found = versions()
    missing = [name for name, number in found.items() if number is None]
    text = ", ".join(f"{name} {number}" for name, number in found.items() if number is not None)
    remedy = f"install {', '.join(missing)}: pip install -e ." if missing else ""
    return Check(name="versions", status="warn" if missing else "ok", text=text, remedy=remedy)


def _kernels_probe() -> Check:
    library = importlib.import_module("atari_dqn.fast.cpu.library")
    if library.instruction_set() == "none":  # then no library is loaded, even here
        text = f"not used, because {library.OVERRIDE} is none: learning on a CPU is slower"
        return Check(name="kernels", status="warn", text=text, remedy=f"unset {library.OVERRIDE}")
    found, remedy = ", ".join(library.kernels_here()), _COMPILER_REMEDY
    better, lacking = library.instruction_set_lacking(), library.libraries_lacking()
    if error := next(filter(None, map(library.load_error, lacking)), None):
        text = f"not all can be loaded, so learning on a CPU is slower: {error}"
        remedy = _LOADER_REMEDY
    elif lacking:
        here = f", only {found}" if found else ""
        text = f"not all compiled{here}: PyTorch computes the rest, so learning on a CPU is slower"
    elif better and library.OVERRIDE not in os.environ:
        text = f"{found or 'none'}: not compiled for {better}, which this processor has and which is faster"
    elif found and not library.uses_threads():
        text, remedy = f"{found}, on one core: PyTorch has no OpenMP", "install a PyTorch with OpenMP"
    else:
        text = f"compiled, for learning on a CPU: {found}" if found else "none for this system"
        return Check(name="kernels", status="ok", text=text)
    return Check(name="kernels", status="warn", text=text, remedy=remedy)


_PROBES = (
    ("torch", probes.torch_check),
    ("OpenMP", probes.openmp_check),
    ("kernels", _kernels_probe),
    ("OpenCV", probes.opencv_check),
    ("ROMs", probes.roms_check),
    ("exact resume", probes.exactness_check),
)


def _gpu_checks(hardware: Hardware) -> Iterator[Check]:
    if not hardware.gpus:
        yield Check(name="GPU", status="ok", text="none that torch can use; runs use the CPU")
    for index, gpu in enumerate(hardware.gpus):
        free = f"{size(gpu.memory_free_bytes)} of {size(gpu.memory_bytes)} free"
        yield Check(name=f"GPU {index}", status="ok", text=f"{gpu.name}; {free}")
