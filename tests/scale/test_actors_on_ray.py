"""Actors on Ray: the state of actors in one process, and a killed actor costs counted steps alone."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from ray_nodes import cluster_environment, lose_node, nodes_of_ray
from tiny import CPU, TINY_CATCH, tiny

from atari_dqn.actors.inline import InlineActors
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.run.logged_events import logged_events
from atari_dqn.train import launch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes by name"),
]

ACTORS = ("env.num_envs=4", "actors.processes=2", "actors.fragment_steps=6", "system.actors_per_core=4")
LOCKSTEP = (*ACTORS, "actors.mode=lockstep", "actors.sync_period_steps=12", "actors.publish_period_updates=2")
FREE = (
    *ACTORS, "actors.mode=free_running", "actors.error_buffer_steps=60", "learner.update_period_steps=32",
    "evaluation.light_period_frames=20M", "evaluation.full_period_frames=20M",
)  # fmt: skip
"""The learner has less to do than its actors, which play all the time."""
PATIENCE_SECONDS = 300.0


def train_on_ray(path: Path, *overrides: str, place: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """Start `dqn train --on ray`, with its output in a file next to the run."""
    options = [word for each in overrides for word in ("--set", each)]
    words = [sys.executable, "-m", "atari_dqn", "train", str(TINY_CATCH), "--run-dir", str(path), "--plain"]
    with path.with_name("output.txt").open("wb") as output:
        return subprocess.Popen(
            [*words, "--on", "ray", *place, *options],
            cwd=path.parent,
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def finished(process: subprocess.Popen[bytes], path: Path) -> dict[str, Any]:
    """Wait for a run, and return its summary; nothing of Ray may be left."""
    try:
        code = process.wait(PATIENCE_SECONDS)
    finally:
        process.kill()
    assert code == 0, path.with_name("output.txt").read_text()
    summary: dict[str, Any] = json.loads((path / "summary.json").read_text())
    return summary


def actors_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Return the processes of the actors that run now."""
    found = []
    with suppress(psutil.Error):
        for each in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.Error):
                if each.name().startswith("ray::RemoteAct"):
                    found.append(each)
    return found


def wait_until(happened: Callable[[], object], what: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not happened():
        assert time.monotonic() < until, what
        time.sleep(0.05)


def reports(path: Path) -> list[dict[str, Any]]:
    """Return the data of the reports of the actors in a run's event log."""
    return [event.data for event in logged_events(path / "events.jsonl") if event.kind == "actors"]


def test_lockstep_on_ray_has_the_state_of_one_process(tmp_path: Path) -> None:
    process = train_on_ray(tmp_path / "ray", *LOCKSTEP)
    origin = launch.Origin(command_line=["dqn", "train"], hardware=find_hardware(tmp_path))
    whole = launch.start(
        tiny(*LOCKSTEP), tmp_path / "whole", device=CPU, views=[], origin=origin, make_actors=InlineActors
    )
    found = finished(process, tmp_path / "ray")
    assert found["updates"] > 40
    assert found["state_digest"] == whole["state_digest"]


@pytest.mark.fault("M07")
def test_an_actor_that_is_killed_on_ray_is_replaced_and_costs_counted_steps(tmp_path: Path) -> None:
    path = tmp_path / "run"
    process = train_on_ray(path, *FREE, "training.total_frames=8000")
    wait_until(lambda: (path / "events.jsonl").exists() and reports(path), "no period ends")
    actors_of(process)[0].kill()
    assert finished(process, path)["env_frames"] >= 8_000
    last = reports(path)[-1]
    assert last["restarts"] == 1
    assert 0 <= last["dropped_steps"] <= 3 * 6 * 2
    assert [actor["state"] for actor in last["actors"]] == ["playing", "playing"]


@pytest.mark.thorough
def test_the_actor_of_a_node_that_is_lost_plays_on_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in cluster_environment().items():
        monkeypatch.setenv(name, value)
    path = tmp_path / "run"
    with nodes_of_ray(cores=[1, 1]) as (address, (_, second)):
        process = train_on_ray(path, *FREE, "training.total_frames=10M", place=("--address", address))
        wait_until(lambda: reports(path), "no period ends")
        assert len([each for each in second.children() if each.name().startswith("ray::RemoteAct")]) == 1
        lose_node(second)

        def plays_again() -> bool:
            last = reports(path)[-1]
            return last["restarts"] > 0 and {each["state"] for each in last["actors"]} == {"playing"}

        wait_until(plays_again, "the actor does not begin anew")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_SECONDS) == 143
    assert "its actors played on Ray; --on ray --address" in path.with_name("output.txt").read_text()
