"""Evaluate a checkpoint on disk, and save its score in the run directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from atari_dqn.compare.reference.caps import stands_for_games
from atari_dqn.compare.reference.studies import HumanRandom, human_random
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.evaluation.frozen_agent import FrozenAgent
from atari_dqn.evaluation.progress import EvaluationKey, EvaluationProgress
from atari_dqn.files.atomic import json_document, plain
from atari_dqn.files.documents import read_json
from atari_dqn.files.new_files import write_numbered
from atari_dqn.run.checkpoint.names import files_of_step
from atari_dqn.run.recorded_scores import sealed_score
from atari_dqn.run.scores import EvaluationEpisode, EvaluationScore, score_protocol
from atari_dqn.spec.named_protocols import ProtocolName, with_protocol
from atari_dqn.spec.protocol import CheckpointChoice, Protocol
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo

_SAME = ("weights_sha256", "protocol_digest", "returns", "lengths_frames", "end_reasons")
"""The keys that are equal in two documents of the same score."""


class SavedScore(NamedTuple):
    """The file of a score."""

    path: Path
    kept_before: bool
    """Whether an earlier evaluation had the same score and saved it."""


@dataclass(frozen=True, kw_only=True)
class CheckpointScore:
    """The score of a checkpoint under one protocol."""

    name: ProtocolName
    """The name under which the protocol was requested; `protocol` holds its fields."""
    score: EvaluationScore
    protocol: Protocol
    reference: HumanRandom | None
    """The human and random scores of the game; None if the table does not contain it."""

    @property
    def human_normalised(self) -> float | None:
        """The human-normalised mean return; None without a reference, or if that does not cover the score."""
        if self.reference is None or not self.comparable:
            return None
        if not self.reference.covers(self.score.frame_caps, self.protocol.max_episode_frames):
            return None
        return self.reference.normalised(self.score.mean_return)

    @property
    def comparable(self) -> bool:
        """Whether the score may be compared with published ones."""
        if self.protocol.flicker_probability > 0:  # another game: docs/decisions/0057
            return False
        return stands_for_games(self.score.frame_caps, self.protocol.max_episode_frames)


def open_progress(
    agent: FrozenAgent, *, protocol: ProtocolName = "run", episodes: int | None = None
) -> EvaluationProgress:
    """Open the file of finished games of an evaluation, to continue it; its folder must exist."""
    spec = with_protocol(agent.spec, protocol)
    recorded_protocol = score_protocol(
        spec,
        episodes=spec.evaluation.full_episodes if episodes is None else episodes,
        checkpoint=agent.choice,
        rom_md5=agent.info.rom_md5,
    )
    key = EvaluationKey.of(agent.network, spec, step=agent.step, protocol=recorded_protocol)
    name = f"step_{agent.step:09d}_{protocol}_{recorded_protocol.digest()}.partial.jsonl"
    return EvaluationProgress(agent.run.evaluations / name, key)


def evaluate_checkpoint(
    agent: FrozenAgent,
    *,
    protocol: ProtocolName = "run",
    episodes: int | None = None,
    envs: int | None = None,
    progress: EvaluationProgress | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> CheckpointScore:
    """Evaluate an agent under a protocol; raise `StoppedError` once `stop()` is true.

    The episodes are the same as in evaluations during training: the first `episodes` of an infinite sequence,
    by default as many as in full evaluations of the run. `envs`: the number of environments played in
    parallel, which affects the time only. Games in `progress` are not played again, and new games are added
    to it. `episodes` and `envs` are at least 1.
    """
    spec = with_protocol(agent.spec, protocol)
    envs = spec.system.evaluation_envs if envs is None else envs
    spec = replace(spec, system=replace(spec.system, evaluation_envs=envs))
    played = evaluate(
        agent.network,
        spec,
        episodes=spec.evaluation.full_episodes if episodes is None else episodes,
        finished=dict(progress.finished) if progress else None,
        on_finished=progress.add if progress else None,
        on_progress=on_progress,
        stop=stop,
    )
    return checkpoint_score(spec, protocol, played, checkpoint=agent.choice, info=agent.info)


def checkpoint_score(
    spec: Spec,
    name: ProtocolName,
    played: Sequence[EvaluationEpisode],
    *,
    checkpoint: CheckpointChoice,
    info: GameInfo,
) -> CheckpointScore:
    """Build the score of games that were played under the protocol of `spec` (`with_protocol`)."""
    score = EvaluationScore.of(played)
    protocol = score_protocol(spec, episodes=score.episodes, checkpoint=checkpoint, rom_md5=info.rom_md5)
    return CheckpointScore(name=name, score=score, protocol=protocol, reference=human_random(spec.game))


def score_document(agent: FrozenAgent, result: CheckpointScore) -> dict[str, Any]:
    """Convert a score with its checkpoint, games and protocol to plain data."""
    return {
        "checkpoint": str(agent.checkpoint),
        "game": agent.spec.game,
        "seed": agent.spec.seed,
        "step": agent.step,
        "env_frames": agent.env_frames,
        "weights_sha256": agent.weights_sha256,
        **result.score.row(),
        "returns": result.score.returns,
        "lengths_frames": result.score.lengths_frames,
        "end_reasons": result.score.end_reasons,
        "comparable": result.comparable,
        "human_normalised": result.human_normalised,
        "human_normalised_by": asdict(result.reference) if result.reference else None,
        "protocol_name": result.name,
        "protocol": asdict(result.protocol),
        "protocol_digest": result.protocol.digest(),
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def save_score(agent: FrozenAgent, result: CheckpointScore) -> SavedScore:
    """Save a score in the run directory, unless it is there already; no file is overwritten.

    It is there if a file has the same weights, protocol and games. Files of earlier versions do not say which
    weights they are of.
    """
    document = plain(score_document(agent, result))
    for path in files_of_step(agent.run.evaluations, agent.step, ".json"):
        if _is_score(path, document):
            return SavedScore(path, kept_before=True)
    name = f"step_{agent.step:09d}_{result.name}_{result.protocol.digest()}.json"
    path = write_numbered(agent.run.evaluations / name, json_document(sealed_score(document)))
    return SavedScore(path, kept_before=False)


def _is_score(path: Path, document: dict[str, Any]) -> bool:
    """Return whether a file is of the score of a document; False if it cannot be read."""
    try:
        stored = read_json(path)
    except (DamagedError, UserError):
        return False
    if not isinstance(stored, dict) or sealed_score(stored) != stored:
        return False
    return all(stored.get(key) == document[key] for key in _SAME)
