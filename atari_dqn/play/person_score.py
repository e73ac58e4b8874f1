"""The scores of a person, stored with the protocol and the speed at which they were made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from atari_dqn.files.atomic import json_document, prepare_folder
from atari_dqn.files.new_files import write_numbered
from atari_dqn.run.scores import EvaluationEpisode, EvaluationScore, score_protocol
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo

_OF_A_GAME = (
    "sticky_probability",
    "noop_max_frames",
    "max_episode_frames",
    "full_action_set",
    "frame_skip",
    "ale_version",
    "rom_md5",
)
"""The fields of a protocol that a person's games have; the others are of a trained agent."""


def person_document(
    spec: Spec, info: GameInfo, games: Sequence[EvaluationEpisode], *, speed: float
) -> dict[str, Any]:
    """Convert a person's finished games, their protocol and their speed to plain data."""
    score = EvaluationScore.of(games)
    protocol = asdict(
        score_protocol(spec, episodes=score.episodes, checkpoint="current", rom_md5=info.rom_md5)
    )
    return {
        "player": "person",
        "game": spec.game,
        "seed": spec.seed,
        **score.row(),
        "returns": score.returns,
        "lengths_frames": score.lengths_frames,
        "end_reasons": score.end_reasons,
        "protocol": {name: protocol[name] for name in _OF_A_GAME},
        "speed": speed,
        "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def save_person(
    folder: Path, spec: Spec, info: GameInfo, games: Sequence[EvaluationEpisode], *, speed: float
) -> Path:
    """Save a person's score in a folder, which is made, and return its path; nothing is overwritten.

    `speed`: that of the games, 1 for 60 frames a second; a slower game is an easier one.
    """
    prepare_folder(folder)
    document = json_document(person_document(spec, info, games, speed=speed))
    return write_numbered(folder / f"{spec.game}_person.json", document)
