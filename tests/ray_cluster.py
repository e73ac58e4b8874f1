"""A real Ray cluster of nodes on this machine, each of which can be lost."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from atari_dqn.scale.on_ray.local_cluster import local_environment

RAY = str(Path(sys.executable).with_name("ray"))


def cluster_environment() -> dict[str, str]:
    """Return the environment in which nodes are started and a command joins them."""
    # without this variable a node has the address that it is given
    return {
        name: value
        for name, value in local_environment().items()
        if name != "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
    }


@dataclass
class Nodes:
    """The nodes of a cluster, the head first."""

    address: str
    temporary: str
    environment: Mapping[str, str]
    raylets: list[psutil.Process] = field(default_factory=list)

    def add(self, *, cores: int) -> psutil.Process:
        """Start a node and return its raylet, whose workers are its children."""
        words = [f"--num-cpus={cores}", "--num-gpus=0", "--object-store-memory=100000000"]
        words += ["--node-ip-address=127.0.0.1"]
        if self.raylets:
            words += [f"--address={self.address}"]
        else:
            port = self.address.partition(":")[2]
            words += ["--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={self.temporary}"]
        subprocess.run(
            [RAY, "start", *words],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=90,
            env={**os.environ, **self.environment},
        )
        self.raylets.append(next(each for each in self._processes() if self._is_new_raylet(each)))
        return self.raylets[-1]

    def kill(self) -> None:
        """Kill every process of the cluster."""
        for each in self._processes():
            with suppress(psutil.Error):
                each.kill()

    def _is_new_raylet(self, process: psutil.Process) -> bool:
        return process.name().startswith("raylet") and process not in self.raylets

    def _processes(self) -> list[psutil.Process]:
        found = []
        for each in psutil.process_iter():
            with suppress(psutil.Error):
                if self.temporary in " ".join(each.cmdline()) or self.temporary in str(each.open_files()):
                    found.append(each)
        return found


@contextmanager
def cluster() -> Iterator[Nodes]:
    """A cluster without nodes; they are killed at the end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    nodes = Nodes(
        address=address,
        temporary=tempfile.mkdtemp(prefix="dqn_ray_", dir="/tmp"),
        environment=cluster_environment(),
    )
    try:
        yield nodes
    finally:
        nodes.kill()
        shutil.rmtree(nodes.temporary, ignore_errors=True)
