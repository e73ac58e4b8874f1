"""A whole run of the toy game, small enough for a test, and ways to make it."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from atari_dqn.machine.hardware import find_hardware
from atari_dqn.run.checkpoint.tree import tree_digest
from atari_dqn.spec.loader import ResolvedSpec, load_spec
from atari_dqn.spec.schema import Spec
from atari_dqn.telemetry.events import Sink
from atari_dqn.telemetry.sinks.selection import NO_OUTLETS, Outlets
from atari_dqn.train import launch
from atari_dqn.train.build import assemble
from atari_dqn.train.loop import Iteration, q_learning
from atari_dqn.train.training import Training

CPU = torch.device("cpu")
TINY_CATCH = Path(__file__).with_name("tiny_catch.toml")


@pytest.fixture(autouse=True, scope="session")
def one_torch_thread() -> Iterator[None]:
    """Nothing here is large enough for two, which on busy cores wait for each other most of the time."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def tiny(*overrides: str) -> ResolvedSpec:
    return load_spec(TINY_CATCH, overrides)


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
    ticks = []
    for tick in islice(q_learning(training), count):
        list(training.reporter.rows(tick, replay_transitions=training.replay.num_transitions))
        ticks.append(tick)
    return ticks


def digest_after(spec: Spec, count: int | None = None) -> str:
    """Return the state digest after `count` ticks, or at the budget's end."""
    with begun(spec) as training:
        ticks_of(training, count)
        return tree_digest(training.state_dict())


def run(
    path: Path, *overrides: str, views: Sequence[Sink] = (), outlets: Outlets = NO_OUTLETS
) -> dict[str, Any]:
    """Train the tiny run, as `dqn train` does, and return its summary."""
    origin = launch.Origin(command_line=["dqn", "train"], hardware=find_hardware(path))
    return launch.start(tiny(*overrides), path, device=CPU, views=views, origin=origin, outlets=outlets)
