"""Collect every score of a run: of its own evaluations, and of `dqn eval`."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files.atomic import is_file
from atari_dqn.files.documents import checked, read_json, read_run_file
from atari_dqn.files.seal import sealed
from atari_dqn.run.archive.archive import SCORES, WEIGHTS, Archive, is_archive, read_archive
from atari_dqn.run.archive.opening import opened_run, results_folder
from atari_dqn.run.checkpoint.names import checkpoint_name
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.logged_events import LoggedEvent, logged_events
from atari_dqn.run.recorded_protocols import recorded_protocols, with_infinite_values
from atari_dqn.spec.loader import load_resolved
from atari_dqn.spec.protocol import Protocol
from atari_dqn.spec.schema import Spec

_MOST_TABLE_BYTES = 2**28
_SEAL = "score_sha256"

WeightsAt = Callable[[int], str | None]
"""A function of a step that returns the digest of the weights there; None if they are not known."""


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
    weights_sha256: str | None = None
    """Digest of the weights, for a score by `dqn eval`; None for the run's own, and in earlier versions."""


class _Scored(Struct, frozen=True):
    """The run whose weights `dqn eval` scored."""

    game: str
    seed: int


def scores_of(path: Path) -> list[RecordedScore]:
    """Return the scores of a run; of an archive those that it holds and those that `dqn eval` made of it.

    A score by `dqn eval` of other weights is left out: of those that an archive of the same name had before,
    or those that a run had at the step before it was resumed from an earlier one.
    """
    with opened_run(path) as run:
        scores = recorded_scores(run)
        if is_archive(path):
            scores += _scores_of_archive(path, run)
    return sorted(scores, key=lambda score: score.step)


def recorded_scores(run: RunDirectory) -> list[RecordedScore]:
    """Return the scores of an opened run in the order of their steps, those of the run itself first."""
    if is_file(run.path / SCORES):
        path = run.path / SCORES
        return checked(path, _with_infinite_protocols(read_json(path)), list[RecordedScore])
    scores = [*_own_scores(run), *_scores_of_checkpoints(run)]
    return sorted(scores, key=lambda score: score.step)


def whole_lines(path: Path) -> bytes:
    """Read a table without a last row that is incomplete; empty if there is no file."""
    if not is_file(path):
        return b""
    data = read_run_file(path, most_bytes=_MOST_TABLE_BYTES)
    return data[: data.rfind(b"\n") + 1]


def _with_infinite_protocols(document: Any) -> Any:
    """Convert the protocols of a list of scores; any other document stays what it is."""
    return [*map(_with_infinite_protocol, document)] if isinstance(document, list) else document


def _with_infinite_protocol(score: Any) -> Any:
    """Convert the protocol of a score, if it has one; any other document stays what it is."""
    if not isinstance(score, dict) or not isinstance(score.get("protocol"), dict):
        return score
    return {**score, "protocol": with_infinite_values(score["protocol"])}


def _own_scores(run: RunDirectory) -> Iterator[RecordedScore]:
    """Join eval_log.csv, which has every score, with the event log, which has the return of each game."""
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
    protocols = recorded_protocols(run, {row["protocol"] for row, _ in rows})
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


def sealed_score(document: Mapping[str, Any]) -> dict[str, Any]:
    """Add the digest of a score's document to it, so that damage is detected."""
    return sealed(document, _SEAL)


def check_score(path: Path) -> None:
    """Read a score by `dqn eval`; raise `DamagedError` if it is not what was written."""
    _read_score(path)


def _read_score(path: Path) -> tuple[_Scored, RecordedScore]:
    """Read a score and whose it is. Scores of earlier versions have no digest."""
    document = read_json(path)
    if isinstance(document, dict):
        if _SEAL in document and sealed_score(document) != document:
            raise DamagedError(f"{path}: is not what was written; the file is damaged or was edited")
        document = _with_infinite_protocol({**document, "kind": "eval"})
    return checked(path, document, _Scored), checked(path, document, RecordedScore)


def _scores_of_checkpoints(run: RunDirectory) -> Iterator[RecordedScore]:
    """Yield the scores that `dqn eval` made of a run's checkpoints, which may be gone by now."""
    spec = load_resolved(run.spec, run.read_provenance()).spec
    acting = spec.learner.acting_network
    return _eval_scores(run.evaluations, spec, lambda step: _saved_weights(run, acting, step))


def _scores_of_archive(path: Path, opened: RunDirectory) -> Iterator[RecordedScore]:
    """Yield the scores that `dqn eval` made of an archive, which has the weights of one step."""
    archive = read_archive(path)
    spec = load_resolved(opened.spec, opened.read_provenance()).spec
    folder = RunDirectory(results_folder(path)).evaluations
    scores = _eval_scores(folder, spec, lambda _: _archived_weights(archive))
    return (score for score in scores if score.step == archive.agent.step)


def _eval_scores(folder: Path, spec: Spec, weights_at: WeightsAt) -> Iterator[RecordedScore]:
    """Yield the scores of a folder that are of a run's game and seed, and not of other weights."""
    weights_at = cache(weights_at)  # a step may have scores under several protocols
    for path in sorted(folder.glob("step_*.json")):
        scored, score = _read_score(path)
        if (scored.game, scored.seed) != (spec.game, spec.seed):
            continue
        if score.weights_sha256 is None or weights_at(score.step) in (None, score.weights_sha256):
            yield score


def _saved_weights(run: RunDirectory, acting_network: str, step: int) -> str | None:
    """Compute the digest of a checkpoint's weights; None if they cannot be read, or are gone."""
    from atari_dqn.run.checkpoint.state_files import read_agent
    from atari_dqn.run.checkpoint.state_tree import tree_digest

    try:
        weights = read_agent(run.checkpoints / checkpoint_name(step)).get(acting_network)
    except (DamagedError, UserError):  # which concerns who loads the checkpoint
        return None
    return None if weights is None else tree_digest(weights)


def _archived_weights(archive: Archive) -> str:
    """Compute the digest of an archive's weights."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    from atari_dqn.run.checkpoint.state_tree import tree_digest

    try:
        return tree_digest(load(archive.parts[WEIGHTS]))
    except (SafetensorError, ValueError, KeyError) as error:
        raise DamagedError(f"{archive.path}: {WEIGHTS}: cannot be read: {error}") from error
