"""Tiny runs whose actors play in turn."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice

from tiny import CPU, MEMORY, tiny_spec

from atari_dqn.actors.inline import InlineActors
from atari_dqn.run.checkpoint.state_tree import tree_digest
from atari_dqn.train.actor_training import ActorTraining
from atari_dqn.train.build import assemble

APEX = ("toggles.prioritized=true", "toggles.n_step=3", "toggles.double=true", "toggles.dueling=true")
R2D2 = (*MEMORY, "toggles.prioritized=true", "toggles.n_step=3")
AGENTS = {"dqn": (), "apex": APEX, "r2d2": R2D2}


def lockstep(actors: int, *overrides: str):
    """The spec of 4 environments, played by some actors in fragments of 6 steps."""
    return tiny_spec(
        "env.num_envs=4", "actors.mode=lockstep", f"actors.processes={actors}", "actors.fragment_steps=6",
        "actors.sync_period_steps=12", "actors.publish_period_updates=2", *overrides,
    )  # fmt: skip


@contextmanager
def begun(spec, make_actors=InlineActors) -> Iterator[ActorTraining]:
    with closing(assemble(spec, CPU, make_actors)) as training:
        training.begin()
        yield training


def play(training: ActorTraining, fragments: int | None = None) -> list:
    """Learn from some fragments, or to the end of the budget, and report each as a session does."""
    iterations = islice(training.iterations(), fragments)
    return [(iteration, list(training.rows(iteration))) for iteration in iterations]


def digest(training: ActorTraining) -> str:
    return tree_digest(training.state_dict())
