"""A Ray cluster of several nodes on this machine, which listens to it alone."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from atari_dqn.scale.on_ray.local_cluster import local_environment

RAY = str(Path(sys.executable).with_name("ray"))
_RAYLET = "raylet"


def cluster_environment() -> dict[str, str]:
    """Return the environment of a cluster whose nodes have the addresses that they are given."""
    wanted = local_environment()
    del wanted["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"]
    return wanted


@contextmanager
def nodes_of_ray(cores: Sequence[int]) -> Iterator[tuple[str, list[psutil.Process]]]:
    """Start a head and further nodes with so many cores each; yield the address and the nodes' raylets.

    The environment must be that of `cluster_environment`.
    """
    temporary = tempfile.mkdtemp(prefix="dqn_ray_", dir="/tmp")
    address = f"127.0.0.1:{_free_port()}"
    head = ["--head", f"--port={address.partition(':')[2]}", "--include-dashboard=false"]
    try:
        for number, count in enumerate(cores):
            place = [f"--address={address}"] if number else [*head, f"--temp-dir={temporary}"]
            _start_node(*place, f"--num-cpus={count}")
        raylets = [each for each in psutil.process_iter(["name"]) if each.info["name"] == _RAYLET]
        ours = [each for each in raylets if temporary in " ".join(each.cmdline())]
        yield address, sorted(ours, key=psutil.Process.create_time)
    finally:
        for each in psutil.process_iter():
            with suppress(psutil.Error):
                if temporary in " ".join(each.cmdline()) or temporary in str(each.open_files()):
                    each.kill()
        shutil.rmtree(temporary, ignore_errors=True)


def lose_node(raylet: psutil.Process) -> None:
    """Kill a node and all that runs on it."""
    for each in [raylet, *raylet.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            each.kill()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _start_node(*words: str) -> None:
    common = ["--num-gpus=0", "--object-store-memory=100000000", "--node-ip-address=127.0.0.1"]
    subprocess.run(
        [RAY, "start", *words, *common],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=180,
        env=os.environ,
    )
