"""Start `dqn train` or `dqn resume` for a member of a sweep, and read why it ended."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from atari_dqn.envs.processes import own_command
from atari_dqn.files.atomic import write_atomically
from atari_dqn.files.failures import writing
from atari_dqn.formatting import printable
from atari_dqn.run.leases.guard import lease_environment
from atari_dqn.run.leases.lease import HeldLease
from atari_dqn.run.leases.owner import start_time
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.record import Member
from atari_dqn.scale.room import Placement
from atari_dqn.spec.keys import build
from atari_dqn.spec.loader import ResolvedSpec, deviating_keys
from atari_dqn.spec.render import resolved_toml

_ERROR = "error: "
_TAIL_BYTES = 8_192


@contextmanager
def training_process(
    folder: SweepFolder, member: Member, placement: Placement, held: HeldLease
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the training of a member under a lease; at the end of the block, kill what is left of it.

    It has a session of its own, so that Ctrl-C in a terminal does not reach it, and on Linux is killed when
    the calling process ends.
    """
    environment = {**os.environ, **lease_environment(held), **_threads(placement.threads)}
    command = [*own_command("atari_dqn"), *_words(folder, member, placement.device)]
    path = folder.output(member.name)
    with writing(path):
        output = path.open("ab")
    with output, _on_cores(placement.cores):
        process = subprocess.Popen(  # noqa: S603 - no shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    try:
        held.set_process(process.pid, start_time(process.pid) or 0)
        yield process
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _words(folder: SweepFolder, member: Member, device: str) -> Sequence[str]:
    """Return the command that begins the run, or resumes it if it has begun."""
    path = str(folder.path / member.name)
    if folder.has_begun(member.name):
        return ["resume", path, "--device", device, "--plain"]
    # as `dqn train` names a run of another game than its spec's; `dqn compare` labels groups by that name
    spec = folder.spec(member.name, f"{member.label}_{member.game}")
    with writing(spec.parent):
        spec.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(spec, _spec_toml(member).encode())
    return ["train", str(spec), "--run-dir", path, "--device", device, "--plain"]


def _spec_toml(member: Member) -> str:
    resolved = ResolvedSpec(
        spec=build(member.values), name=member.name, deviations=deviating_keys(member.values)
    )
    return resolved_toml(resolved)


def _threads(threads: int) -> dict[str, str]:
    return {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}


@contextmanager
def _on_cores(cores: Sequence[int]) -> Iterator[None]:
    """Let the processes that the block starts run on some cores only; affinity belongs to the thread."""
    set_affinity = getattr(os, "sched_setaffinity", None)  # macOS has none
    if not cores or set_affinity is None:
        yield
        return
    before = os.sched_getaffinity(0)
    set_affinity(0, cores)
    try:
        yield
    finally:
        set_affinity(0, before)


def output_length(path: Path) -> int:
    """Return the length of the output of earlier commands, after which that of the next one begins."""
    return path.stat().st_size if path.exists() else 0


def last_error(path: Path, start: int) -> list[str]:
    """Return the lines of the last error in an output after an offset, or its last line."""
    try:
        with path.open("rb") as file:
            file.seek(max(start, path.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return []
    written = [line.strip() for line in lines if line.strip()]
    errors = [place for place, line in enumerate(written) if line.startswith(_ERROR)]
    found = written[errors[-1] :] if errors else written[-1:]
    return [printable(line.removeprefix(_ERROR)) for line in found]
