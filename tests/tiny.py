"""A whole run of the toy game, small enough for a test, and ways to make it."""

import fcntl
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from atari_dqn.machine.hardware import find_hardware
from atari_dqn.run.checkpoint.state_tree import tree_digest
from atari_dqn.spec.loader import ResolvedSpec, load_spec
from atari_dqn.spec.schema import Spec
from atari_dqn.telemetry.events import Sink
from atari_dqn.telemetry.sinks.options import NO_SINKS, SinkOptions
from atari_dqn.train import launch
from atari_dqn.train.build import MakeActors, assemble, local_actors
from atari_dqn.train.loop import Iteration
from atari_dqn.train.training import Training

CPU = torch.device("cpu")
TINY_CATCH = Path(__file__).with_name("tiny_catch.toml")
SPECTRUM = "exploration.kind=spectrum"
"""An override of `tiny`, which then leaves out the key of the other kind of exploration."""
SEQUENCES = (
    "replay.kind=sequences", "replay.sequence_steps=8", "replay.burn_in_steps=0",
    "replay.sequence_period_steps=4", "learner.reduction=mean",
)  # fmt: skip
MEMORY = (
    *SEQUENCES, "replay.burn_in_steps=4", "network.memory=lstm", "network.memory_units=16",
    "network.hidden_units=16", "env.stack_frames=1",
)  # fmt: skip
"""An agent with memory, on single frames."""
ROLLOUTS = (
    "replay.kind=rollouts", "network.kind=nature_layer_norm", "env.num_envs=4", "replay.capacity_steps=32",
    "replay.prefill_steps=32", "learner.batch_size=8", "learner.update_period_steps=4",
    "learner.target_period_updates=1", "learner.reduction=mean", "learner.loss=mse", "optimizer.kind=radam",
    "env.noop_max_frames=0",
)  # fmt: skip
"""Rollouts of 8 steps of 4 environments, and two passes over each, in minibatches of 8."""
FEW_STEPS = ("training.total_frames=80", "replay.prefill_steps=10")
"""A run of 20 steps and 2 updates, for tests of what is around a training."""


def tiny(*overrides: str) -> ResolvedSpec:
    if SPECTRUM not in overrides:
        return load_spec(TINY_CATCH, overrides)
    with TemporaryDirectory() as folder:
        path = Path(folder) / TINY_CATCH.name
        path.write_text(TINY_CATCH.read_text().replace("epsilon_decay_frames = 1_000\n", ""))
        return load_spec(path, overrides)


def tiny_spec(*overrides: str) -> Spec:
    return tiny(*overrides).spec


@contextmanager
def begun(spec: Spec) -> Iterator[Training]:
    """A training at its first frames."""
    with closing(assemble(spec, CPU)) as training:
        training.begin()
        yield training


def ticks_of(training: Training, count: int | None = None) -> list[Iteration]:
    """Play `count` ticks, or all that the budget leaves, and report each, as a session does."""
    iterations = []
    for iteration in islice(training.iterations(), count):
        list(training.rows(iteration))
        iterations.append(iteration)
    return iterations


def digest_after(spec: Spec, count: int | None = None) -> str:
    """Return the state digest after `count` ticks, or at the budget's end."""
    with begun(spec) as training:
        ticks_of(training, count)
        return tree_digest(training.state_dict())


def run(
    path: Path,
    *overrides: str,
    views: Sequence[Sink] = (),
    sink_options: SinkOptions = NO_SINKS,
    make_actors: MakeActors = local_actors,
) -> dict[str, Any]:
    """Train the tiny run, as `dqn train` does, and return its summary."""
    origin = launch.Origin(command_line=["dqn", "train"], hardware=find_hardware(path))
    return launch.start(
        tiny(*overrides), path, device=CPU, views=views, origin=origin, sink_options=sink_options,
        make_actors=make_actors,
    )  # fmt: skip


def run_once(folder: Path, *overrides: str) -> Path:
    """Train the tiny run unless `folder` has it already, and return it, which is for reading only.

    Processes that share the folder wait for the one that trains. The run's name needs care.
    """
    place = folder / hashlib.sha256("\n".join(overrides).encode()).hexdigest()[:8]
    place.mkdir(exist_ok=True)
    path, done = place / "my run [é]", place / "done"
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            run(path, *overrides)
            done.touch()
    return path
