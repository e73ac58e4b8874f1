"""Lose one of the nodes of a Ray cluster for good, and time until its run goes on at another.

A cluster on this machine has a head that trains nothing and two nodes of a core each. `dqn sweep --on ray`
trains one run there. Once the run has a checkpoint, and right after a heartbeat of its lease, which is the
worst moment, its node, with all that runs on it, gets SIGKILL. Timed are the seconds from then until the
run's lease has stood for three heartbeats, until the other node has taken the run over, and until its
training has resumed. Each round begins anew, and the state digests of all must be equal. Prints a line a
round and writes JSON to --out.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hardware import circumstances

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from atari_dqn.run.leases.lease import Lease
from atari_dqn.run.leases.observer import LeaseObserver
from atari_dqn.run.sweep.folder import SweepFolder

from ray_nodes import cluster_environment, lose_node, nodes_of_ray
from sweeping import PATIENCE_SECONDS, SPEC, finish, outcomes, start

RUN = "killed_atari_pong_seed1"
FRAMES = 28_800


def round_of(sweep: Path, folder: Path, period_seconds: float) -> dict[str, Any]:
    """Train the run on a cluster that loses its node; return the seconds until it goes on, and its state."""
    options = ("--on", "ray", "--heartbeat", str(period_seconds), "--address")
    own = SweepFolder(folder)
    with (
        nodes_of_ray(cores=[0, 1, 1]) as (address, raylets),
        start(sweep, folder, *options, address) as process,
    ):
        wait_for(lambda: own.newest_checkpoint(RUN), process, "the run has no checkpoint")
        before = own.leases.current()[RUN].heartbeat
        wait_for(lambda: own.leases.current()[RUN].heartbeat > before, process, "the run has no heartbeat")
        lease = own.leases.current()[RUN]
        nodes = {worker.pid: raylet for raylet in raylets for worker in raylet.children(recursive=True)}
        lose_node(nodes[lease.owner.pid])
        seconds = seconds_until_it_goes_on(own, lease, process)
        code = process.wait(PATIENCE_SECONDS)
    assert code == 0, folder.with_name(f"{folder.name}.command.txt").read_text()
    return {"seconds_until": seconds, "state_digest": outcomes(folder)[RUN]["state digest"]}


def seconds_until_it_goes_on(folder: SweepFolder, lost: Lease, process: Any) -> dict[str, float]:
    """Return the seconds from now until a lost run is silent, taken over, and resumed."""
    observer, began, events = LeaseObserver(folder.leases), time.monotonic(), folder.run(RUN).events
    resumed_before = events.read_text().count('"kind": "resumed"')

    def is_silent() -> bool:
        observer.refresh()
        return is_taken() or observer.is_silent(RUN)

    def is_taken() -> bool:
        present = folder.leases.current().get(RUN)
        return present is not None and present.token != lost.token

    def is_resumed() -> bool:
        return events.read_text().count('"kind": "resumed"') > resumed_before

    found = {}
    for name, happened in (("silent", is_silent), ("taken_over", is_taken), ("resumed", is_resumed)):
        wait_for(happened, process, f"the run is not {name}")
        found[name] = round(time.monotonic() - began, 2)
    return found


def wait_for(happened: Callable[[], object], process: Any, what: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < until, what
        assert process.poll() is None, f"{what}: the command has ended"
        time.sleep(0.02)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--heartbeat", type=float, default=5.0)
    arguments = parser.parse_args()
    os.environ.update(cluster_environment())
    rounds = []
    with tempfile.TemporaryDirectory() as name:
        sweep = Path(name) / "one.toml"
        sweep.write_text(f'spec = "{SPEC}"\n[set]\ntraining.total_frames = {FRAMES}\n')
        finish(sweep, Path(name) / "whole")
        digest = outcomes(Path(name) / "whole")[RUN]["state digest"]
        for number in range(arguments.rounds):
            found = round_of(sweep, Path(name) / f"round{number}", arguments.heartbeat)
            rounds.append({**found, "is_exact": found["state_digest"] == digest})
            print(rounds[-1], flush=True)
    most = {key: max(each["seconds_until"][key] for each in rounds) for key in rounds[0]["seconds_until"]}
    heartbeats = {key: round(seconds / arguments.heartbeat, 2) for key, seconds in most.items()}
    later = max(each["seconds_until"]["resumed"] - each["seconds_until"]["silent"] for each in rounds)
    found = {
        "heartbeat_seconds": arguments.heartbeat,
        "most_heartbeats_until": heartbeats,
        "most_heartbeats_from_silent_to_resumed": round(later / arguments.heartbeat, 2),
        "rounds": rounds,
    }
    arguments.out.write_text(json.dumps({**found, **circumstances()}, indent=2) + "\n")
    sys.exit(not all(each["is_exact"] for each in rounds))


if __name__ == "__main__":
    main()
