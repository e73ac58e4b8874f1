"""Trains the tiny run as it is written and compiled; prints how far apart they come, and if one goes on.

A program of its own: the checks of shapes that tests put around every function cannot be compiled.
"""

import copy
import json
import sys
from contextlib import closing
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from tiny import CPU, begun, ticks_of, tiny_spec

from atari_dqn.checkpoint.tree import tree_digest
from atari_dqn.train.assembly import assemble


def goes_on(overrides: list[str]) -> bool:
    """Whether a training that is put back at its middle, by another object, ends as one that went on."""
    spec = tiny_spec(*overrides)
    with begun(spec) as training:
        ticks_of(training, 100)
        halfway = copy.deepcopy(training.state_dict())
        ticks_of(training)
        end = tree_digest(training.state_dict())
    with closing(assemble(spec, CPU)) as resumed:
        resumed.load_state_dict(halfway)
        ticks_of(resumed)
        return tree_digest(resumed.state_dict()) == end


def learned(overrides: list[str], updates: int) -> tuple[torch.Tensor, list[list[int]], torch.Tensor]:
    """Return all weights after so many updates, where the streams are, and how far weights have moved."""
    with begun(tiny_spec(*overrides)) as training:
        weights = list(training.learner.online.parameters())
        before = torch.cat([weight.detach().flatten() for weight in weights]).clone()
        while training.clock.updates < updates:
            ticks_of(training, 1)
        after = torch.cat([weight.detach().flatten() for weight in weights])
        streams = (training.learner.generator, training.policy.generator)
        return after, [stream.get_state().tolist() for stream in streams], (after - before).abs().max()


def main() -> None:
    backend, updates, combinations = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    torch.set_num_threads(1)
    torch.compile = partial(torch.compile, backend=backend)
    rows = []
    for overrides in combinations:
        plain, streams, moved = learned(overrides, updates)
        compiled, compiled_streams, _ = learned([*overrides, "learner.compile=true"], updates)
        rows.append(
            {
                "difference_over_movement": float((plain - compiled).abs().max() / moved),
                "same_streams": streams == compiled_streams,
                "goes_on": goes_on([*overrides, "learner.compile=true"]),
            }
        )
    sys.stdout.write(json.dumps(rows))


main()
