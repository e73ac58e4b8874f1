"""Make the archive of an agent: its weights, and the spec, provenance, scores and tables of its run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import torch
from msgspec import Struct

from atari_dqn.errors import DamagedError
from atari_dqn.evaluation.frozen_agent import FrozenAgent
from atari_dqn.evaluation.weights import weights_data
from atari_dqn.files.atomic import is_file, json_document
from atari_dqn.files.documents import checked, read_json, read_run_file
from atari_dqn.run.archive.archive import PROVENANCE, SCORES, SPEC, WEIGHTS, Archive, is_archive, read_archive
from atari_dqn.run.archive.manifest import AgentRecord
from atari_dqn.run.checkpoint.names import checkpoint_name, files_of_step
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.log_damage import log_remedy
from atari_dqn.run.recorded_scores import scores_of, whole_lines

_TABLES = ("eval_log", "update_log", "throughput_log")
"""The tables without which `dqn compare` reads no run. It reads train_log too, which archives do not have."""
MOST_VIDEO_BYTES = 2**28
"""Size of the largest video that an archive gets."""
_VIDEOS = "videos/"
_MOST_RECORDING_BYTES = 2**30


class _Source(Struct, frozen=True):
    step: int
    weights_sha256: str | None = None


class _Recording(Struct, frozen=True):
    """The keys of a recording that say of which weights it is; `record.recording` reads all of it."""

    game: str
    seed: int
    source: _Source


def archive_of(agent: FrozenAgent, video: Path | None) -> Archive:
    """Make the archive of an agent, with every score of these weights, and a video if it is not too large.

    `video`: the newest video of these weights. If the agent was loaded from an archive, the scores include
    those that `dqn eval` made of it; without a video that fits, the archive keeps its own.
    """
    found = read_archive(agent.source) if is_archive(agent.source) else _archive_of_run(agent)
    parts = {**found.parts, SCORES: json_document(msgspec.to_builtins(scores_of(agent.source)))}
    if video is not None and not is_oversized(video):
        parts = {name: data for name, data in parts.items() if not name.startswith(_VIDEOS)}
        name = f"{_VIDEOS}{checkpoint_name(agent.step)}.mp4"  # that of `video` may be any
        parts[name] = read_run_file(video, most_bytes=MOST_VIDEO_BYTES)
    return Archive(path=found.path, agent=found.agent, parts=parts)


def newest_video(agent: FrozenAgent) -> Path | None:
    """Return the newest video of an agent with these weights; None if there is none.

    The recording next to a video says of which weights it is; a video without one may be of any. Videos in
    an imported archive have none, and `archive_of` keeps them.
    """
    videos = newest_first(files_of_step(agent.run.videos, agent.step, ".mp4"))
    return next((video for video in videos if _shows(agent, video.with_suffix(".json"))), None)


def newest_first(paths: Sequence[Path]) -> list[Path]:
    """Sort files by the time when they were last written, newest first."""
    return sorted(paths, key=lambda path: (path.stat().st_mtime, path.name), reverse=True)


def _shows(agent: FrozenAgent, recording: Path) -> bool:
    """Return whether a recording is of an agent's weights; False if it is missing or damaged."""
    if not is_file(recording):
        return False
    try:
        found = checked(recording, read_json(recording, most_bytes=_MOST_RECORDING_BYTES), _Recording)
    except DamagedError:  # which `dqn verify` reports
        return False
    weights_sha256, step = found.source.weights_sha256, found.source.step
    return agent.has_weights(weights_sha256, game=found.game, seed=found.seed, step=step)


def is_oversized(video: Path) -> bool:
    """Return whether a video is too large for an archive, which then has none or an earlier one."""
    return video.stat().st_size > MOST_VIDEO_BYTES


def _archive_of_run(agent: FrozenAgent) -> Archive:
    run = RunDirectory.open(agent.source)
    parts = {
        SPEC: read_run_file(run.spec),
        PROVENANCE: read_run_file(run.provenance),
        **{f"{name}.csv": _table(run.tables / f"{name}.csv") for name in _TABLES},
        WEIGHTS: weights_data(agent.network.state_dict()),
    }
    return Archive(path=run.path, agent=_record(agent), parts=parts)


def _table(path: Path) -> bytes:
    """Read a table of a run; raise `DamagedError` if not even its header is there."""
    data = whole_lines(path)
    if not data:
        raise DamagedError(
            f"{path}: missing or without a header, and an archive needs it; {log_remedy(path.parent)}"
        )
    return data


def _record(agent: FrozenAgent) -> AgentRecord:
    return AgentRecord(
        game=agent.spec.game,
        step=agent.step,
        env_frames=agent.env_frames,
        checkpoint=agent.choice,
        torch_threads=torch.get_num_threads(),
    )
