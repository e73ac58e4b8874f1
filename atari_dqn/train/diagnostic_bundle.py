"""Write the diagnostic bundle of a failure gate that halts a run."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

import numpy as np

from atari_dqn.minibatch import Batch
from atari_dqn.run.checkpoint.state_files import AGENT, write_agent
from atari_dqn.telemetry.events import GateChanged
from atari_dqn.telemetry.gates.update_gates import UpdateRecord
from atari_dqn.types import StateDict

README = "README.txt"
UPDATES = "updates.csv"
BATCH = "batch"
_COLUMN_FILES = {"index": "cell"}
"""Names of files that differ from the name of the column, as in bundles of earlier versions."""

_FIRST_STEPS = {
    "loss": f"""\
1. {BATCH}/r_t.npy and {BATCH}/weight.npy: a value that is not finite comes from the game or the replay.
2. {UPDATES}, from its end upward: what grew first? max_q and loss growing together over many updates is
   divergence: lower optimizer.learning_rate, clip with learner.max_grad_norm, or set learner.loss = "huber".
3. {AGENT}: weights that are not finite were so before this update; a gradient that is not finite is never
   applied.""",
    "gradients": f"""\
1. {UPDATES}, column nonfinite_gradients: where it begins to count, and grad_norm before that. A norm that
   grew over many updates is divergence: lower optimizer.learning_rate, or clip with learner.max_grad_norm.
2. If such gradients begin at once with finite losses, the backward pass overflows. If learner.precision is
   "bf16", try "fp32".
3. {BATCH}: the minibatch of the last of them. {AGENT}: the weights, which none of them changed.""",
}


def write_bundle(
    directory: Path,
    change: GateChanged,
    *,
    batch: Batch | None,
    updates: Iterable[UpdateRecord],
    learner: StateDict,
    spec: Path,
) -> None:
    """Write the data needed to find out why a gate tripped, replacing an older bundle of the same step.

    Raise `OSError` if writing fails.
    """
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    (directory / README).write_text(_readme(change), encoding="utf-8")
    shutil.copyfile(spec, directory / "spec.toml")
    _write_updates(directory / UPDATES, updates)
    if batch is not None:
        _write_batch(directory / BATCH, batch)
    write_agent(directory, learner)


def _write_updates(path: Path, updates: Iterable[UpdateRecord]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(UpdateRecord._fields)
        writer.writerows(updates)


def _write_batch(directory: Path, batch: Batch) -> None:
    directory.mkdir()
    for field in fields(batch):
        name = _COLUMN_FILES.get(field.name, field.name)
        np.save(directory / f"{name}.npy", getattr(batch, field.name).cpu().numpy())


def _readme(change: GateChanged) -> str:
    return f"""\
The gate "{change.gate}" halted this run at step {change.step:,}, frame {change.env_frames:,}.

    {change.message}
    measured {change.value}, threshold {change.threshold}

What to look at first
{_FIRST_STEPS[change.gate]}

What is here
{BATCH}/*.npy   the minibatch of that update: states (without random shifts), actions, rewards, discounts,
              importance weights, indices
{UPDATES}   the metrics of the last 1,000 updates since the start or the resume, the oldest first
{AGENT}      networks and optimizer at the halt, as in a checkpoint (torch.load, weights_only=True)
spec.toml     the complete spec of the run
"""
