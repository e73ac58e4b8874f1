"""Scores of games that a cap on their length cut: which stand for whole games, and how they are marked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from atari_dqn.human import score
from atari_dqn.reference.tables import studies

MARK = "†"
"""Stands behind a score some of whose games were cut."""


def marked_score(evaluation: Mapping[str, Any]) -> str:
    """Return the mean return of a row of eval_log as text, marked where the cap cut games; `-` of no row."""
    mark = MARK if evaluation.get("frame_caps", 0) > 0 else ""
    return f"{score(float(evaluation.get('mean_return', math.nan)))}{mark}"


@cache
def published_caps() -> frozenset[int]:
    """Return the caps that published scores were measured under, in emulator frames."""
    caps = (study.protocol.get("max_episode_frames") for study in studies().values())
    return frozenset(cap for cap in caps if cap is not None)


def stands_for_games(frame_caps: int, max_episode_frames: int | None) -> bool:
    """Return whether a score may be normalised, aggregated and compared with published ones.

    It may where the cap cut no game, and where the cap is one that published scores share: theirs were cut at
    the same length. `frame_caps`: games that the cap cut. `max_episode_frames`: None for a cap that is not
    known.
    """
    return not frame_caps or max_episode_frames in published_caps()


def cut_in_words(frame_caps: int, episodes: int, max_episode_frames: int | None) -> str:
    """Return how many games were cut where: `2 of 2 games were cut at 1,000 frames, …`."""
    cap = "a cap that is not known" if max_episode_frames is None else f"{max_episode_frames:,} frames"
    words = f"{frame_caps:,} of {episodes:,} games were cut at {cap}"
    same = stands_for_games(frame_caps, max_episode_frames)
    return f"{words}, as games of published scores were" if same else f"{words}, as in no published score"
