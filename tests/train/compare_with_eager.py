"""Train the tiny run eagerly and compiled, and print the differences as JSON.

This is a separate program, because the shape checks that tests add to every function cannot be compiled.
"""

import json
import os
import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from tiny import begun, ticks_of, tiny_spec
from torch._dynamo.utils import counters

from atari_dqn.fast import structure


def learned(overrides: list[str], updates: int) -> dict[str, object]:
    """Train for some updates; return the weights, their largest change and the states of the streams."""
    counters.clear()
    with begun(tiny_spec(*overrides)) as training:
        graphs_before = graphs()
        weights = list(training.learner.online.parameters())
        before = torch.cat([weight.detach().flatten() for weight in weights]).clone()
        while training.clock.updates < updates:
            ticks_of(training, 1)
        after = torch.cat([weight.detach().flatten() for weight in weights])
        streams = (training.learner.generator, training.actor.generator)
        return {
            "weights": after,
            "moved": (after - before).abs().max(),
            "streams": [stream.get_state().tolist() for stream in streams],
            "graphs_before": graphs_before,
            "graphs": graphs(),
        }


def graphs() -> int:
    """Return the number of graphs that PyTorch has traced."""
    return counters["stats"]["unique_graphs"]


def main() -> None:
    backend, updates, combinations = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    torch.set_num_threads(1)
    structure.unit_for = lambda _: None  # what is compiled has none of ours, whose bf16 rounds otherwise
    if backend != "inductor":
        os.environ["CXX"] = sys.executable  # it is looked for, and never called
    torch.compile = partial(torch.compile, backend=backend)
    rows = []
    for overrides in combinations:
        plain = learned(overrides, updates)
        compiled = learned([*overrides, "learner.compile=true"], updates)
        difference = (plain["weights"] - compiled["weights"]).abs().max()
        rows.append(
            {
                "difference_over_movement": float(difference / plain["moved"]),
                "same_streams": plain["streams"] == compiled["streams"],
                "graphs_before": compiled["graphs_before"],
                "graphs": compiled["graphs"],
            }
        )
    sys.stdout.write(json.dumps(rows))


main()
