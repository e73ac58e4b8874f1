"""The score of a checkpoint on disk, from its files alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from atari_dqn.compare.reference.caps import stands_for_games
from atari_dqn.compare.reference.tables import HumanRandom, human_random
from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.evaluation.frozen_agent import FrozenAgent
from atari_dqn.evaluation.progress import EvaluationKey, EvaluationProgress
from atari_dqn.files.atomic import unused, write_json_atomically
from atari_dqn.run.checkpoint.tree import tree_digest
from atari_dqn.run.scores import EvaluationScore, score_protocol
from atari_dqn.spec.named_protocols import ProtocolName, with_protocol
from atari_dqn.spec.protocol import Protocol


@dataclass(frozen=True, kw_only=True)
class CheckpointScore:
    """A score under one protocol."""

    name: ProtocolName
    """What the protocol was called; `protocol` says what it was."""
    score: EvaluationScore
    protocol: Protocol
    reference: HumanRandom | None
    """What a person and chance score on the game; None where the table does not have it."""

    @property
    def human_normalised(self) -> float | None:
        """The mean return, 0 for chance and 1 for a person; None for a score that does not compare."""
        if self.reference is None or not self.comparable:
            return None
        return self.reference.normalised(self.score.mean_return)

    @property
    def comparable(self) -> bool:
        """Whether the score may be normalised and compared with published ones."""
        return stands_for_games(self.score.frame_caps, self.protocol.max_episode_frames)


def open_progress(
    agent: FrozenAgent, *, protocol: ProtocolName = "run", episodes: int | None = None
) -> EvaluationProgress:
    """Open the games that an interrupted evaluation of an agent has finished; the folder must be there."""
    spec = with_protocol(agent.spec, protocol)
    words = score_protocol(
        spec,
        episodes=episodes or spec.evaluation.full_episodes,
        checkpoint=agent.choice,
        rom_md5=agent.info.rom_md5,
    )
    key = EvaluationKey(
        weights_sha256=tree_digest(dict(agent.network.state_dict())),
        step=agent.step,
        protocol=words.digest(),
        seed=spec.seed,
        device=next(agent.network.parameters()).device.type,
        torch_threads=torch.get_num_threads(),
    )
    name = f"step_{agent.step:09d}_{protocol}_{words.digest()}.partial.jsonl"
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
    """Play an evaluation of an agent under a protocol; `StoppedError` once `stop()` is true.

    The episodes are those of the run's own evaluations: the first `episodes` of one endless sequence, as many
    as the run's full evaluations by default. `envs` of them are played side by side, which changes nothing
    but the time it takes. Games that `progress` has are not played again, and it gets those that are.
    """
    spec = with_protocol(agent.spec, protocol)
    if envs is not None:
        spec = replace(spec, system=replace(spec.system, evaluation_envs=envs))
    played = evaluate(
        agent.network,
        spec,
        episodes=episodes or spec.evaluation.full_episodes,
        finished=dict(progress.finished) if progress else None,
        on_finished=progress.add if progress else None,
        on_progress=on_progress,
        stop=stop,
    )
    score = EvaluationScore.of(played)
    return CheckpointScore(
        name=protocol,
        score=score,
        protocol=score_protocol(
            spec, episodes=score.episodes, checkpoint=agent.choice, rom_md5=agent.info.rom_md5
        ),
        reference=human_random(agent.spec.game),
    )


def score_document(agent: FrozenAgent, result: CheckpointScore) -> dict[str, Any]:
    """Return a score, with all that it takes to trust it, as plain data."""
    return {
        "checkpoint": str(agent.checkpoint),
        "game": agent.spec.game,
        "seed": agent.spec.seed,
        "step": agent.step,
        "env_frames": agent.env_frames,
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


def save_score(agent: FrozenAgent, result: CheckpointScore) -> Path:
    """Keep a score in its run's directory and return where; an older one is never overwritten."""
    name = f"step_{agent.step:09d}_{result.name}_{result.protocol.digest()}.json"
    path = unused(agent.run.evaluations / name)
    write_json_atomically(path, score_document(agent, result))
    return path
