"""Decide whether scores of games that the frame cap truncated are comparable, and mark them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from atari_dqn.compare.reference.studies import studies
from atari_dqn.formatting import score

MARK = "†"
"""The mark after a score of which the cap truncated some games."""


def marked_score(evaluation: Mapping[str, Any]) -> str:
    """Format the mean return of a row of eval_log, marked if the cap truncated games; `-` without a row."""
    mark = MARK if evaluation.get("frame_caps", 0) > 0 else ""
    return f"{score(float(evaluation.get('mean_return', math.nan)))}{mark}"


@cache
def published_caps() -> frozenset[int]:
    """Return the frame caps of the published scores, in emulator frames."""
    caps = (study.protocol.get("max_episode_frames") for study in studies().values())
    return frozenset(cap for cap in caps if cap is not None)


def stands_for_games(frame_caps: int, max_episode_frames: int | None) -> bool:
    """Return whether a score may be normalised, aggregated and compared with published ones.

    It may if the cap truncated no game, or if published scores have the same cap. `frame_caps`: number of
    games that the cap truncated. `max_episode_frames`: the cap; None if it is not known.
    """
    return not frame_caps or max_episode_frames in published_caps()


def cut_in_words(frame_caps: int, episodes: int, max_episode_frames: int | None) -> str:
    """Describe the truncated games in words: `2 of 2 games were cut at 1,000 frames, …`."""
    cap = "a cap that is not known" if max_episode_frames is None else f"{max_episode_frames:,} frames"
    words = f"{frame_caps:,} of {episodes:,} games were cut at {cap}"
    same = stands_for_games(frame_caps, max_episode_frames)
    return f"{words}, as games of published scores were" if same else f"{words}, as in no published score"
