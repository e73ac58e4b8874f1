"""The model of the flow (`atari_dqn.bench.flow`) against real runs with 1, 2, 4 and 8 actors on this machine.

Calibrates the model: what an actor plays, what a message, an update and a publication take, each alone. Then
trains with actors in processes, free-running, and compares frames/s, which must agree within 15 %, the
shares of waiting, and the lag. At the end the model predicts 1 to 512 actors that have cores of their own,
with one learner and a network of 10 Gbit/s. Writes JSON to --out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hardware import circumstances
from simulated_actors import FirstWeights, played
from spec_here import load_spec_here

from atari_dqn.actors.build import build_role
from atari_dqn.actors.inline import InlineActors
from atari_dqn.actors.insertion import steps_in
from atari_dqn.actors.message import decode, encode
from atari_dqn.actors.orders import Order
from atari_dqn.actors.weights import FlatWeights
from atari_dqn.bench.flow import FlowConstants, predict
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.spec.constraints import given
from atari_dqn.spec.schema import Spec
from atari_dqn.train.actor_training import ActorTraining
from atari_dqn.train.build import assemble

RUNS = Path(__file__).parents[1] / "runs"
CPU = torch.device("cpu")
ACTORS = (1, 2, 4, 8)
AT_SCALE = tuple(2**power for power in range(10))
NETWORK_BYTES_PER_SECOND = 10e9 / 8
PIPE_BYTES_PER_SECOND = 1e9
"""An allowance: pipes of one machine are never what is saturated."""
TOLERANCE = 0.15


def spec_of(name: str, actors: int, envs: int, overrides: list[str]) -> Spec:
    """Return a spec with free-running actors, a small replay and a short prefill."""
    own = [
        f"actors.processes={actors}",
        f"env.num_envs={actors * envs}",
        "actors.mode=free_running",
        "replay.capacity_steps=16_000",
        "replay.prefill_steps=2_000",
        "learner.threads=1",
        "system.actors_per_core=8",
    ]
    return load_spec_here(RUNS / f"{name}.toml", [*own, *overrides]).spec


def actor_rate(spec: Spec, seconds: float) -> float:
    """Measure the steps per second of an actor that acts greedily, which takes longest."""
    published = FirstWeights()
    role = build_role(spec, 0, published)
    with closing(assemble(spec, CPU, InlineActors)) as training:
        assert isinstance(training, ActorTraining)
        published.flat = FlatWeights(training.learner.online).read()
    order = Order(epsilon=np.zeros(role.envs.num_envs), least_version=0)
    role.play(order)
    began, steps = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        steps += steps_in(decode(encode(role.play(order))))
    rate = steps / (time.perf_counter() - began)
    role.close()
    return rate


def learner_times(spec: Spec, seconds: float) -> dict[str, float]:
    """Measure the learner's seconds for a message, an update and a publication, in this process."""
    with closing(assemble(spec, CPU, InlineActors)) as training:
        assert isinstance(training, ActorTraining)
        training.begin()
        first, following = (encode(each) for each in played(spec))
        training.store(decode(first))

        def receive() -> None:
            fragment = decode(following)
            training.store(fragment)
            list(training._episode_rows(fragment))

        while training.clock.steps < spec.replay.prefill_steps:
            receive()
        weights = training.weights
        return {
            "receiving_seconds": _seconds(receive, seconds),
            "update_seconds": _seconds(lambda: training.update(1), seconds),
            "publishing_seconds": _seconds(lambda: training.envs.publish(0, weights.read()), seconds),
        }


def _seconds(work: Any, seconds: float) -> float:
    """Return the median duration of some work."""
    found: list[float] = []
    began = time.perf_counter()
    while time.perf_counter() - began < seconds:
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def calibrated(spec: Spec, seconds: float) -> FlowConstants:
    """Measure the constants of a spec with one actor."""
    fragment = played(spec)[1]
    learner = spec.learner
    cores = find_hardware(Path.cwd()).cores_usable
    times: dict[str, Any] = learner_times(spec, seconds)
    return FlowConstants(
        actor_steps_per_second=actor_rate(spec, seconds),
        envs_per_actor=spec.env.num_envs,
        message_steps=steps_in(fragment),
        message_bytes=len(encode(fragment)),
        updates_per_step=learner.updates_per_period / learner.update_period_steps,
        publish_period_updates=given(spec.actors.publish_period_updates),
        sync_period_steps=given(spec.actors.sync_period_steps),
        messages_in_flight=given(spec.actors.max_messages_in_flight),
        bytes_per_second=PIPE_BYTES_PER_SECOND,
        actor_cores=cores,
        shared_cores=cores,
        **times,
    )


def trained(spec: Spec, seconds: float) -> dict[str, Any]:
    """Train for some seconds after the prefill; return frames/s, the shares of waiting, and the lag."""
    with closing(assemble(spec, CPU)) as training:
        assert isinstance(training, ActorTraining)
        training.begin()
        iterations = training.iterations()
        while not training.clock.learning:
            list(training.rows(next(iterations)))
        training.meter.report(training.envs.records)
        began, steps = time.perf_counter(), training.clock.steps
        while time.perf_counter() - began < seconds:
            list(training.rows(next(iterations)))
        wall = time.perf_counter() - began
        _, report = training.meter.report(training.envs.records)
        return {
            "frames_per_second": (training.clock.steps - steps) * spec.env.frame_skip / wall,
            "learner_waits": report["learner_waited_share"],
            "actors_wait": report["actors_waited_share"],
            "lag_updates": report["mean_lag_updates"],
            "lag_seconds": report["mean_lag_seconds"],
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--spec", default="apex_small", help="a shipped spec with actors")
    parser.add_argument("--set", dest="overrides", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--envs", type=int, default=2, help="of each actor")
    parser.add_argument("--actors", type=int, nargs="+", default=ACTORS)
    parser.add_argument("--seconds", type=float, default=15.0, help="of each run")
    options = parser.parse_args()
    torch.set_num_threads(1)
    constants = calibrated(spec_of(options.spec, 1, options.envs, options.overrides), options.seconds / 5)
    print(constants, flush=True)
    rows = []
    for actors in options.actors:
        found = trained(spec_of(options.spec, actors, options.envs, options.overrides), options.seconds)
        flow = predict(constants, actors)
        expected = {**asdict(flow), "frames_per_second": flow.frames_per_second}
        off = flow.frames_per_second / found["frames_per_second"] - 1
        rows.append({"actors": actors, "measured": found, "predicted": expected, "off": off})
        print(f"{actors} actors: {found['frames_per_second']:,.0f} frames/s, the model is {off:+.0%} off")
    alone = replace(constants, actor_cores=None, shared_cores=None, bytes_per_second=NETWORK_BYTES_PER_SECOND)
    flows = [predict(alone, actors) for actors in AT_SCALE]
    result = {
        **circumstances(),
        "spec": options.spec,
        "constants": asdict(constants),
        "compared": rows,
        "within_tolerance": all(abs(row["off"]) <= TOLERANCE for row in rows),
        "at_scale": [{**asdict(each), "frames_per_second": each.frames_per_second} for each in flows],
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
