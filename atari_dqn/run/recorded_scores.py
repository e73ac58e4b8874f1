"""Collect every score of a run: of its own evaluations, and of `dqn eval`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import is_file
from atari_dqn.files.documents import checked, read_json, read_run_file, with_infinity
from atari_dqn.run.archive.archive import SCORES, is_archive
from atari_dqn.run.archive.opening import opened_run, results_folder
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.logged_events import LoggedEvent, logged_events
from atari_dqn.spec.protocol import Protocol

_MOST_TABLE_BYTES = 2**28


class RecordedScore(Struct, frozen=True, kw_only=True):
    """A score with its protocol and the returns of its games."""

    step: int
    env_frames: int
    kind: str
    """`light`, `full` or `final` for an evaluation of the run itself; `eval` for one by `dqn eval`."""
    protocol_digest: str
    protocol: Protocol | None
    """None for a run of an earlier version, which did not record it."""
    mean_return: float
    returns: tuple[float, ...] | None
    """The return of each game in order; None if the event log has lost them."""
    lengths_frames: tuple[int, ...] | None
    frame_caps: int
    """Number of games that the frame cap truncated."""


def scores_of(path: Path) -> list[RecordedScore]:
    """Return the scores of a run; of an archive those that it holds and those that `dqn eval` made of it."""
    with opened_run(path) as run:
        scores = recorded_scores(run)
    if is_archive(path):
        scores += _eval_scores(RunDirectory(results_folder(path)))
    return sorted(scores, key=lambda score: score.step)


def recorded_scores(run: RunDirectory) -> list[RecordedScore]:
    """Return the scores of an opened run in the order of their steps, those of the run itself first."""
    if is_file(run.path / SCORES):
        path = run.path / SCORES
        return checked(path, _with_infinite_protocols(read_json(path)), list[RecordedScore])
    scores = [*_own_scores(run), *_eval_scores(run)]
    return sorted(scores, key=lambda score: score.step)


def whole_lines(path: Path) -> bytes:
    """Read a table without a last row that is incomplete; empty if there is no file."""
    if not is_file(path):
        return b""
    data = read_run_file(path, most_bytes=_MOST_TABLE_BYTES)
    return data[: data.rfind(b"\n") + 1]


def checked_protocols(path: Path, records: Mapping[str, Mapping[str, Any]]) -> dict[str, Protocol]:
    """Convert the protocols of a provenance, by fingerprint; `DamagedError` names file and key if invalid."""
    protocols = {digest: _protocol(record) for digest, record in records.items()}
    return checked(path, protocols, dict[str, Protocol], key="protocols")


def _protocol(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a protocol with the infinity that was written as text: no reward clipping."""
    return {name: with_infinity(value) for name, value in record.items()}


def _with_infinite_protocols(document: Any) -> Any:
    """Convert the protocols of a list of scores; any other document stays what it is."""
    return [*map(_with_infinite_protocol, document)] if isinstance(document, list) else document


def _with_infinite_protocol(score: Any) -> Any:
    """Convert the protocol of a score, if it has one; any other document stays what it is."""
    if not isinstance(score, dict) or not isinstance(score.get("protocol"), dict):
        return score
    return {**score, "protocol": _protocol(score["protocol"])}


def _own_scores(run: RunDirectory) -> Iterator[RecordedScore]:
    """Join eval_log.csv, which has every score, with the event log, which has the return of each game."""
    protocols = checked_protocols(run.provenance, run.read_provenance().get("protocols", {}))
    played = {
        (event.step, event.data.get("protocol")): event
        for event in logged_events(run.events)
        if event.kind == "evaluation"
    }
    path = run.tables / "eval_log.csv"
    text = whole_lines(path).decode(errors="replace")
    try:
        rows = [(row, _row_values(row)) for row in csv.DictReader(io.StringIO(text))]
    except (csv.Error, KeyError, TypeError, ValueError) as error:
        raise DamagedError(f"{path}: cannot be read as a table of scores: {error}") from error
    for row, values in rows:
        event = played.get((values["step"], row["protocol"]), LoggedEvent(kind="", step=0))
        games = {name: event.data.get(name) for name in ("returns", "lengths_frames")}
        score = {**values, **games, "protocol": protocols.get(row["protocol"])}
        yield checked(path, score, RecordedScore)


def _row_values(row: Mapping[str, str]) -> dict[str, Any]:
    return {
        "step": int(row["step"]),
        "env_frames": int(row["env_frames"]),
        "kind": row["eval_type"],
        "protocol_digest": row["protocol"],
        "mean_return": float(row["mean_return"]),
        "frame_caps": int(row["frame_caps"]),
    }


def _eval_scores(run: RunDirectory) -> Iterator[RecordedScore]:
    for path in sorted(run.evaluations.glob("step_*.json")):
        document = read_json(path)
        if isinstance(document, dict):
            document = _with_infinite_protocol({**document, "kind": "eval"})
        yield checked(path, document, RecordedScore)
