"""The score of a checkpoint on disk, from its files alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from atari_dqn.assembly import build_network
from atari_dqn.checkpoint.files import read_agent
from atari_dqn.checkpoint.locate import locate
from atari_dqn.checkpoint.store import verify
from atari_dqn.clock import steps_to_frames
from atari_dqn.devices import make_repeatable
from atari_dqn.envs.registry import make_lanes
from atari_dqn.evaluate import STREAM, evaluate
from atari_dqn.protocol import CheckpointChoice, Protocol
from atari_dqn.scores import EvaluationScore, score_protocol
from atari_dqn.spec.loader import load_resolved
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo


@dataclass(frozen=True, kw_only=True)
class CheckpointScore:
    """A checkpoint, its score, and the protocol of that score."""

    checkpoint: Path
    step: int
    env_frames: int
    score: EvaluationScore
    protocol: Protocol


def evaluate_checkpoint(
    path: Path,
    *,
    episodes: int | None,
    device: torch.device,
    on_progress: Callable[[int, int], None] | None = None,
) -> CheckpointScore:
    """Play the evaluation of the checkpoint that `path` names; a run directory stands for its latest.

    The episodes are those of the run's own evaluations: the first `episodes` of one endless sequence, as many
    as the run's full evaluations by default. `UserError` or `DamagedError` if the files are not a run's.
    """
    run, checkpoint = locate(path)
    spec = load_resolved(run.spec).spec
    manifest = verify(checkpoint)
    torch.set_num_threads(run.recorded("torch_threads"))
    make_repeatable(device)
    info = game_info(spec)
    network = build_network(spec, info, device)
    network.load_state_dict(read_agent(checkpoint, device)["online"])
    played = evaluate(
        network, spec, episodes=episodes or spec.evaluation.full_episodes, on_progress=on_progress
    )
    score = EvaluationScore.of(played)
    return CheckpointScore(
        checkpoint=checkpoint,
        step=manifest["step"],
        env_frames=steps_to_frames(manifest["step"], frame_skip=spec.env.frame_skip),
        score=score,
        protocol=score_protocol(
            spec, episodes=score.episodes, checkpoint=_choice(path, manifest), rom_md5=info.rom_md5
        ),
    )


def game_info(spec: Spec) -> GameInfo:
    """Return what is known of a spec's game."""
    lanes = make_lanes(game=spec.game, env=spec.env, num_lanes=1, seed=spec.seed, stream=STREAM)
    with closing(lanes):
        return lanes.info


def _choice(path: Path, manifest: dict[str, Any]) -> CheckpointChoice:
    """Return which of a run's weights these are: the best if named so, the last, or those of their moment."""
    if path.name == "best":
        return "best"
    return "last" if manifest["bookkeeping"]["finished"] else "current"
