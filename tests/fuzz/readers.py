"""Every reader of a file from disk as a function of the file's bytes: it returns, or refuses in words.

A reader that raises anything but the program's own errors has a fault. Each needs a folder of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tiny import CPU, ticks_of, tiny_spec

from atari_dqn.compare.run_tables import EVALUATIONS, read_tables
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files.documents import parse_json
from atari_dqn.run.checkpoint.archive import read_archive
from atari_dqn.run.checkpoint.array_files import read_array
from atari_dqn.run.checkpoint.bookkeeping import check_bookkeeping
from atari_dqn.run.checkpoint.catalog import read_catalog
from atari_dqn.run.checkpoint.layout import ArrayLayout, layout_of_rest
from atari_dqn.run.checkpoint.learner_layout import check_learner
from atari_dqn.run.checkpoint.manifest import read_manifest, sealed
from atari_dqn.run.checkpoint.names import MANIFEST
from atari_dqn.run.checkpoint.segments import SavedRows, Segment
from atari_dqn.run.checkpoint.state_files import read_rest
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.tailing.run_events import RunEvents
from atari_dqn.spec.loader import load_resolved, load_spec
from atari_dqn.train.build import assemble

Reader = Callable[[bytes], None]
NOT_OF_THE_SPEC = (LookupError, ArithmeticError, ValueError, TypeError, RuntimeError)
"""What `train.resumption` takes for a state that is none of the run's specification."""


def make_reader(name: str, folder: Path) -> Reader:
    """Return a reader that refuses in silence."""
    read = MAKERS[name](folder)

    def reader(data: bytes) -> None:
        try:
            read(data)
        except (UserError, DamagedError):
            return

    return reader


def _manifest(folder: Path) -> Reader:
    """Read a manifest as it is, then, where it is a table, under a seal that fits it."""

    def read(data: bytes) -> None:
        (folder / MANIFEST).write_bytes(data)
        try:
            _read_manifest(folder)
        except DamagedError:
            table = _table(data)
            if table is not None:
                text = json.dumps(sealed({**table, "schema_version": 2}))
                (folder / MANIFEST).write_text(text)
                _read_manifest(folder)

    return read


def _read_manifest(folder: Path) -> None:
    check_bookkeeping(folder / MANIFEST, read_manifest(folder)["bookkeeping"])


def _table(data: bytes) -> dict[str, Any] | None:
    try:
        value = parse_json(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _state(folder: Path) -> Reader:
    """Read state.json with a real checkpoint's other files, and load it."""
    training = assemble(tiny_spec("replay.prefill_steps=120"), CPU)
    training.begin()
    store = CheckpointStore(folder)
    ticks_of(training, 100)
    state = training.state_dict()
    store.save(step=100, training=state, bookkeeping={}, eval_score=None)
    checkpoint, learner = store.latest(), state["learner"]

    def read(data: bytes) -> None:
        (checkpoint / "state.json").write_bytes(data)
        rest = read_rest(checkpoint, layout_of_rest(training.state_dict()))
        try:
            training.load_state_dict({**rest, "learner": learner})
        except NOT_OF_THE_SPEC:
            return

    return read


def _catalog(folder: Path) -> Reader:
    def read(data: bytes) -> None:
        (folder / "catalog.json").write_bytes(data)
        read_catalog(folder)

    return read


def _provenance(folder: Path) -> Reader:
    def read(data: bytes) -> None:
        (folder / "provenance.json").write_bytes(data)
        RunDirectory(folder).read_provenance()

    return read


def _spec(folder: Path) -> Reader:
    def read(data: bytes) -> None:
        (folder / "spec.toml").write_bytes(data)
        for load in (load_spec, load_resolved):
            try:
                load(folder / "spec.toml")
            except UserError as error:
                str(error)

    return read


def _csv(folder: Path) -> Reader:
    """Read a table as a comparison does, and as `dqn watch` does."""

    def read(data: bytes) -> None:
        (folder / "eval_log.csv").write_bytes(data)
        RunEvents(folder).new()
        read_tables([folder / "eval_log.csv"], EVALUATIONS)

    return read


def _jsonl(folder: Path) -> Reader:
    def read(data: bytes) -> None:
        (folder / "events.jsonl").write_bytes(data)
        RunEvents(folder).new()

    return read


def _segment(folder: Path) -> Reader:
    name = "replay/000000000000-000000000004.zst"
    (folder / "replay").mkdir()
    segment = Segment(file=name, first=0, stop=4, digest="", sha256="", bytes=0)
    columns = {"frame": ("|u1", (1, 3, 3)), "reward": ("<f4", (1,))}
    rows = SavedRows(folder, spans=[(0, 4)], columns=columns, segments=[segment])

    def read(data: bytes) -> None:
        (folder / name).write_bytes(data)
        rows.read(0, 4)

    return read


def small_learner() -> dict[str, Any]:
    """Return the state of a learner of six weights, as a checkpoint's agent.pt holds one."""
    network = torch.nn.Linear(2, 2)
    with torch.no_grad():
        network.weight.fill_(0.5)
        network.bias.fill_(0.25)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.001)
    network(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    weights = dict(network.state_dict())
    return {"online": weights, "optimizer": optimizer.state_dict(), "updates": 1}


def _weights(folder: Path) -> Reader:
    learner = small_learner()

    def read(data: bytes) -> None:
        (folder / "agent.pt").write_bytes(data)
        check_learner(folder / "agent.pt", read_archive(folder / "agent.pt", learner), learner)

    return read


def _array(folder: Path) -> Reader:
    layout = ArrayLayout(np.dtype(np.int64), (3,))

    def read(data: bytes) -> None:
        (folder / "a.npy").write_bytes(data)
        for expected in (layout, None):
            try:
                read_array(folder / "a.npy", expected)
            except DamagedError:
                continue

    return read


MAKERS: dict[str, Callable[[Path], Reader]] = {
    "manifest": _manifest,
    "state": _state,
    "catalog": _catalog,
    "provenance": _provenance,
    "spec": _spec,
    "csv": _csv,
    "jsonl": _jsonl,
    "segment": _segment,
    "weights": _weights,
    "array": _array,
}
