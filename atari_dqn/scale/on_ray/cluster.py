"""Join a Ray cluster, and check that its nodes can train the runs of a sweep as this machine would."""

from __future__ import annotations

import logging
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import ray
from ray._private import worker as ray_worker
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from atari_dqn.errors import InfrastructureError, UserError
from atari_dqn.formatting import printable
from atari_dqn.machine.hardware import Hardware
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.scale.on_ray import node as on_node
from atari_dqn.scale.on_ray.address import check_requires_token
from atari_dqn.scale.shared_folder import check_answer, remove_probe, write_probe

_PATIENCE_SECONDS = 120.0
"""A node may have to start a Python process and import torch to answer."""
_CONNECT_SECONDS, _CONNECT_TRIES = 2.0, 3
_FOLDER_OF_PACKAGE = Path(__file__).parents[3]
"""Workers import from the folder in which the cluster was joined before any other."""
_IMPORT_FAILED = "failed to import on the worker"


class ClusterLostError(InfrastructureError):
    """The cluster does not answer any more; what ran there resumes from its last checkpoints."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node of the cluster that runs may be given to."""

    id: str
    name: str
    """Its host, and its address for nodes of the same host."""
    machine: str
    """Identity of its machine, as in leases."""
    hardware: Hardware
    usable: tuple[int, ...]
    """The cores that its processes may use."""
    cores: int
    ram: int
    """What Ray may give to tasks there, in cores and bytes, whether or not others use it now."""

    @property
    def free_ram(self) -> int:
        """Bytes of memory that were free when the node was described, at most those that Ray may give."""
        return min(self.hardware.memory_available_bytes, self.ram)


class Cluster:
    """A cluster that this process has joined."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self.own_node = ray.get_runtime_context().get_node_id()
        """Identity of the node that is this machine."""

    def alive(self) -> dict[str, Mapping[str, Any]]:
        """Return Ray's description of each living node; `ClusterLostError` if there is no answer."""
        self._check_answers()
        alive = {each["NodeID"]: each for each in ray.nodes() if each["Alive"]}  # type: ignore[no-untyped-call]
        if self.own_node not in alive:
            raise ClusterLostError("the Ray node of this machine has ended, by which runs are started")
        return alive

    def _check_answers(self) -> None:
        """Check that the head listens: Ray's own calls wait for a minute and then end the process."""
        for _ in range(_CONNECT_TRIES):
            try:
                socket.create_connection(self._address, timeout=_CONNECT_SECONDS).close()
            except OSError:
                time.sleep(0.5)
            else:
                return
        host, port = self._address
        raise ClusterLostError(f"the head of the Ray cluster, {host}:{port}, does not answer any more")

    def describe(self, ids: Sequence[str], path: Path) -> list[Node]:
        """Return the nodes with their hardware; `UserError` names one that cannot train these runs."""
        alive = self.alive()
        asked = {key: self._ask(key, on_node.report, str(path.absolute())) for key in ids if key in alive}
        return [
            _described(key, alive[key], self._answer(alive[key]["NodeManagerAddress"], ref))
            for key, ref in asked.items()
        ]

    def check_folder(self, folder: SweepFolder, nodes: Sequence[Node]) -> None:
        """Check that nodes have the sweep's folder; `UserError` names one that has another."""
        probe, path = write_probe(folder), str(folder.path.absolute())
        try:
            asked = {
                each.id: self._ask(each.id, on_node.answer, path, asdict(probe), each.name) for each in nodes
            }
            for each in nodes:
                refusal = self._answer(each.name, asked[each.id])
                if refusal:
                    raise UserError(str(refusal))
                check_answer(folder, probe, each.name)
        finally:
            remove_probe(folder, probe)

    def _ask(self, node_id: str, function: Callable[..., Any], *arguments: Any) -> ray.ObjectRef[Any]:
        # Its worker ends after the call, so that it keeps no memory of a GPU.
        remote = ray.remote(max_calls=1, num_cpus=0, max_retries=1)(function)
        return remote.options(scheduling_strategy=on(node_id)).remote(*arguments)  # type: ignore[no-any-return]

    def _answer(self, name: str, ref: ray.ObjectRef[Any]) -> Any:
        try:
            return ray.get(ref, timeout=_PATIENCE_SECONDS)
        except ray.exceptions.RayTaskError as error:
            text = str(error)
            reason = printable(text.strip().rpartition("\n")[2])
            if _IMPORT_FAILED not in text:
                raise
            raise UserError(
                f"{name}: cannot import this version of atari_dqn ({reason}); install it in the environment "
                "in which `ray start` runs"
            ) from None
        except ray.exceptions.RayError as error:
            raise UserError(f"{name}: does not answer ({type(error).__name__}); see `ray status`") from None


def on(node_id: str) -> NodeAffinitySchedulingStrategy:
    """Return the strategy that runs a task on a node and nowhere else."""
    return NodeAffinitySchedulingStrategy(node_id, soft=False)


def _described(node_id: str, found: Mapping[str, Any], report: on_node.Plain) -> Node:
    address = found["NodeManagerAddress"]
    name = f"{report['host']} ({address})"
    check_versions(name, report["versions"], on_node.versions())
    check_requires_token(address, report["mode"])
    return Node(
        id=node_id,
        name=name,
        machine=report["machine"],
        hardware=msgspec.convert(report["hardware"], Hardware),
        usable=tuple(report["cores"]),
        cores=int(found["Resources"].get("CPU", 0)),
        ram=int(found["Resources"].get("memory", 0)),
    )


def check_versions(node: str, found: Mapping[str, str], expected: Mapping[str, str]) -> None:
    """Raise a `UserError` that names a node with another version of what results depend on."""
    for package, wanted in expected.items():
        has = found.get(package) or "none"
        if has != wanted:
            raise UserError(f"{node}: has {package} {has}, expected {wanted} as here; install the same")


@contextmanager
def joined(host: str, port: int) -> Iterator[Cluster]:
    """Join a cluster for a block of code."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        socket.create_connection((host, port), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UserError(f"--address: nothing answers at {address}: {reason}") from None
    _silence()
    try:
        try:
            with chdir(_FOLDER_OF_PACKAGE):
                ray.init(address, log_to_driver=False, configure_logging=False)
        except (ray.exceptions.RayError, RuntimeError, ConnectionError, ValueError) as error:
            raise UserError(
                f"--address: cannot join the Ray cluster at {address}: {_first_line(error)}"
            ) from None
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        yield Cluster(host, port)
    finally:
        ray.shutdown()


def _first_line(error: BaseException) -> str:
    return printable(next(filter(None, map(str.strip, str(error).splitlines())), type(error).__name__))


def _silence() -> None:
    """Keep Ray's log out of the view of the sweep, which says what matters of it."""
    logger = logging.getLogger("ray")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    ray_worker._worker_logs_enabled = False  # it prints notices of dead workers even so
