"""The model of the flow (`atari_dqn.bench.flow`) against real runs with 1, 2, 4 and 8 actors on this machine.

Calibrates the model: what an actor plays, and what a message, an update and a publication take, at the same
time, because busy cores slow each other down; before the runs and after them. Trains with actors in
processes, free-running, and compares frames/s, which must agree within 15 %, the shares of waiting, and the
lag. The model describes a flow in which the limiter holds the ratio of updates to steps, so the runs have a
buffer of two messages, and are measured when it has had time to fill or to empty: with the shipped buffer,
actors play 10,000 steps before the learner holds them. At the end the model predicts 1 to 512 actors that
have cores of their own, with one learner and a network of 10 Gbit/s. Writes JSON to --out.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import asdict, replace
from functools import partial
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from atari_dqn.actors.build import build_role
from atari_dqn.actors.inline import InlineActors
from atari_dqn.actors.insertion import steps_in
from atari_dqn.actors.message import decode, encode
from atari_dqn.actors.orders import Order
from atari_dqn.actors.process import prepare_process
from atari_dqn.actors.snapshot import SharedSnapshot
from atari_dqn.actors.weights import FlatWeights
from atari_dqn.bench.flow import FlowConstants, predict
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.spec.constraints import given
from atari_dqn.spec.schema import Spec
from atari_dqn.train.actor_training import ActorTraining
from atari_dqn.train.build import assemble
from hardware import circumstances
from simulated_actors import FirstWeights, played
from spec_here import load_spec_here

import numpy as np
import torch

RUNS = Path(__file__).parents[1] / "runs"
CPU = torch.device("cpu")
ACTORS = (1, 2, 4, 8)
AT_SCALE = tuple(2**power for power in range(10))
NETWORK_BYTES_PER_SECOND = 10e9 / 8
PIPE_BYTES_PER_SECOND = 1e9
"""An allowance: pipes of one machine are never what is saturated."""
TOLERANCE = 0.15
MEASURED = ("actor_steps_per_second", "receiving_seconds", "update_seconds", "publishing_seconds")
"""The constants that are times of this machine."""


def spec_of(name: str, actors: int, envs: int, overrides: list[str]) -> Spec:
    """Return a spec with free-running actors, a small replay, a short prefill and a small error buffer."""
    own = [
        f"actors.processes={actors}",
        f"env.num_envs={actors * envs}",
        "actors.mode=free_running",
        "replay.capacity_steps=16_000",
        "replay.prefill_steps=2_000",
        "learner.threads=1",
        "system.actors_per_core=8",
    ]
    spec = load_spec_here(RUNS / f"{name}.toml", [*own, *overrides]).spec
    message_steps = given(spec.actors.fragment_steps) * envs
    buffer_steps = 2 * max(message_steps, spec.learner.update_period_steps)
    return replace(spec, actors=replace(spec.actors, error_buffer_steps=buffer_steps))


def actor_rate(spec: Spec, seconds: float) -> float:
    """Measure the steps per second of an actor, in a process of its own."""
    prepare_process()
    published = FirstWeights()
    role = build_role(spec, 0, published)
    with closing(assemble(spec, CPU, InlineActors)) as training:
        assert isinstance(training, ActorTraining)
        published.flat = FlatWeights(training.learner.online).read()
    order = Order(epsilon=np.zeros(role.envs.num_envs), least_version=0)
    role.play(order)
    began, steps = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        steps += steps_in(decode(encode(role.play(order), compressed=True)))
    rate = steps / (time.perf_counter() - began)
    role.close()
    return rate


def learner_times(spec: Spec, seconds: float) -> dict[str, float]:
    """Measure the learner's seconds for a message, an update and a publication, in this process."""
    with closing(assemble(spec, CPU, InlineActors)) as training:
        assert isinstance(training, ActorTraining)
        training.begin()
        first, following = (encode(each, compressed=True) for each in played(spec))
        training.store(decode(first))

        def receive() -> None:
            fragment = decode(following)
            training.store(fragment)
            list(training._episode_rows(fragment))

        while training.clock.steps < spec.replay.prefill_steps:
            receive()
        weights, snapshot = training.weights, SharedSnapshot(training.weights.size)
        return {
            "receiving_seconds": _seconds(receive, seconds),
            "update_seconds": _seconds(lambda: training.update(1), seconds),
            "publishing_seconds": _seconds(lambda: snapshot.publish(0, weights.read()), seconds),
        }


def _seconds(work: Callable[[], object], seconds: float) -> float:
    """Return the mean duration of some work, the first time left out."""
    work()
    began = time.perf_counter()
    for repetitions in count(1):
        work()
        if (passed := time.perf_counter() - began) > seconds:
            return passed / repetitions
    raise AssertionError


def calibrated(spec: Spec, seconds: float) -> FlowConstants:
    """Measure the constants of a spec with one actor, while the learner works as well."""
    fragment = played(spec)[1]
    learner = spec.learner
    cores = find_hardware(Path.cwd()).cores_usable
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as actor:
        actor.submit(prepare_process).result()  # which takes some seconds
        rate = actor.submit(actor_rate, spec, 3 * seconds)
        times: dict[str, Any] = learner_times(spec, seconds)
    return FlowConstants(
        actor_steps_per_second=rate.result(),
        envs_per_actor=spec.env.num_envs,
        message_steps=steps_in(fragment),
        message_bytes=len(encode(fragment, compressed=True)),
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
    """Train for some seconds, after the prefill and half of them; return frames/s, waiting and lag."""
    with closing(assemble(spec, CPU)) as training:
        assert isinstance(training, ActorTraining)
        training.begin()
        iterations, clock = training.iterations(), training.clock

        def train_for(seconds: float) -> float:
            began = time.perf_counter()
            while (passed := time.perf_counter() - began) < seconds:
                list(training.rows(next(iterations)))
            return passed

        while not clock.learning:
            list(training.rows(next(iterations)))
        train_for(seconds / 2)
        training.meter.report(training.envs.records, seconds)
        steps, updates = clock.steps, clock.updates
        wall = train_for(seconds)
        _, report = training.meter.report(training.envs.records, wall)
        return {
            "frames_per_second": (clock.steps - steps) * spec.env.frame_skip / wall,
            "updates_per_step": (clock.updates - updates) / (clock.steps - steps),
            "learner_waits": report["learner_waited_share"],
            "a_message_waits": report["actors_waited_share"],
            "lag_updates": report["mean_lag_updates"],
            "lag_seconds": report["mean_lag_seconds"],
        }


def mean_of(before: FlowConstants, after: FlowConstants) -> FlowConstants:
    """Return the means of what was measured before and after the runs: a machine's speed changes."""
    means = {name: (getattr(before, name) + getattr(after, name)) / 2 for name in MEASURED}
    return replace(before, **means)


def predicted(constants: FlowConstants, actors: int) -> dict[str, Any]:
    """Compute the prediction of the model as plain data."""
    flow = predict(constants, actors)
    return {**asdict(flow), "frames_per_second": flow.frames_per_second}


def compared(constants: FlowConstants, actors: int, found: dict[str, Any]) -> dict[str, Any]:
    """Compare a run with the prediction, and print how far it is off."""
    flow = predicted(constants, actors)
    off = flow["frames_per_second"] / found["frames_per_second"] - 1
    print(f"{actors} actors: {found['frames_per_second']:,.0f} frames/s, the model is {off:+.0%} off")
    return {"actors": actors, "measured": found, "predicted": flow, "off": off}


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
    spec = partial(spec_of, options.spec, envs=options.envs, overrides=options.overrides)
    before = calibrated(spec(actors=1), options.seconds / 3)
    measured = {actors: trained(spec(actors=actors), options.seconds) for actors in options.actors}
    constants = mean_of(before, calibrated(spec(actors=1), options.seconds / 3))
    rows = [compared(constants, actors, found) for actors, found in measured.items()]
    alone = replace(constants, actor_cores=None, shared_cores=None, bytes_per_second=NETWORK_BYTES_PER_SECOND)
    result = {
        **circumstances(),
        "spec": options.spec,
        "overrides": options.overrides,
        "seconds": options.seconds,
        "constants": asdict(constants),
        "compared": rows,
        "within_tolerance": all(abs(row["off"]) <= TOLERANCE for row in rows),
        "at_scale": [predicted(alone, actors) for actors in AT_SCALE],
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
