"""A Ray cluster on this machine for one command, and the process that ends all of it when the command's ends.

Run as a program, it starts a cluster, prints the address, and waits until its standard input ends or the
cluster is broken. On Linux orphans of the cluster become its children, so that it finds and kills them all.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import select
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import psutil  # type: ignore[import-untyped]

from atari_dqn.envs.processes import own_command
from atari_dqn.errors import InfrastructureError
from atari_dqn.scale.on_ray.address import MODE, TOKEN, TOKEN_PATH

_PR_SET_CHILD_SUBREAPER = 36
"""Option of `prctl(2)` that makes a process the parent of all orphans among its descendants."""
_LEAST_STORE_BYTES = 100 * 2**20
"""Near the smallest that Ray accepts. Of a run of a sweep a few hundred bytes go through Ray."""
_ENDING_SECONDS = 30.0
_CORE = ("raylet", "gcs_server")
"""Processes without which the cluster is broken."""


def local_environment() -> dict[str, str]:
    """Return environment variables for a cluster that listens to this machine alone, and to a new token."""
    return {
        MODE: "token",
        TOKEN: secrets.token_hex(32),
        TOKEN_PATH: "",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # nodes then have the address 127.0.0.1, on Linux too
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",  # Ray's default is 15, with which any other program takes their cores
    }


@contextmanager
def local_cluster(cores: int, store_bytes: int = 0) -> Iterator[str]:
    """Start a cluster on this machine, yield its address, and leave no process or file of it.

    `store_bytes`: what Ray's object store must hold at least.
    """
    folder = Path(tempfile.mkdtemp(prefix="dqn_ray_", dir="/tmp"))  # its sockets need a short path
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - not in the folder, which the process removes
    process = subprocess.Popen(  # noqa: S603 - no shell
        [*own_command(__name__), str(folder), str(cores), str(store_bytes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,  # Ctrl-C in a terminal does not reach it
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        address = process.stdout.readline().decode().strip()
        if not address:
            raise InfrastructureError(f"Ray did not start on this machine: {_last_line(errors)}")
        yield address
    finally:
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_ENDING_SECONDS)
        process.kill()
        process.wait()
        process.stdout.close()
        errors.close()
        shutil.rmtree(folder, ignore_errors=True)


def _last_line(file: IO[bytes]) -> str:
    file.seek(0)
    lines = file.read().decode(errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "no reason is known")


def main(folder: str, cores: str, store_bytes: str) -> None:
    """Start a cluster and end it with the process at the other end of standard input."""
    import ray

    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    output = os.dup(1)
    os.dup2(2, 1)  # what Ray prints is no address
    try:
        ray.init(
            "local",
            num_cpus=int(cores),
            num_gpus=0,  # runs share GPUs by measured memory, of which Ray knows nothing
            object_store_memory=max(_LEAST_STORE_BYTES, int(store_bytes)),
            include_dashboard=False,
            log_to_driver=False,
            _temp_dir=folder,
        )
        core = [each for each in psutil.Process().children() if each.name() in _CORE]
        os.write(output, f"{ray.get_runtime_context().gcs_address}\n".encode())
        os.close(output)
        while all(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in core):
            if select.select([0], [], [], 0.5)[0] and not os.read(0, 1):
                break
    except Exception:
        traceback.print_exc()  # the process ends without Python's own report
    finally:
        _end_descendants()
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)  # Ray's own ending would wait for processes that are gone


def _end_descendants() -> None:
    """Kill every process that this one has started, directly or not."""
    while left := psutil.Process().children(recursive=True):
        for each in left:
            with suppress(psutil.Error):
                each.kill()
        psutil.wait_procs(left, timeout=1.0)


if __name__ == "__main__":
    main(*sys.argv[1:])
