"""Select our evaluations at the frames of nnabla-rl's figures, and compare scores with published figures."""

from __future__ import annotations

import polars as pl
from keep_pqn import number

from atari_dqn.compare.reference.studies import Figure

EVALUATION_WITHIN_FRAMES = 100_000
"""How far an evaluation may be from the frames of a figure, below `AVERAGED_FROM_FRAMES`."""
AVERAGED_FROM_FRAMES, AVERAGED_WITHIN_FRAMES = 10_000_000, 2_000_000
"""From where nnabla-rl's figures are means of several evaluations, and how far these may be from a figure."""

STRONG = ("below", "above")
"""Verdicts in bold."""


def evaluations_at(evaluations: pl.DataFrame, millions: int) -> pl.DataFrame:
    """Select the evaluations to average for a score at a number of frames; none if the run ends before.

    Below `AVERAGED_FROM_FRAMES` that is the evaluation at these frames. From there on it is every evaluation
    within `AVERAGED_WITHIN_FRAMES`: for a run that ends at 10M those from 8M to 10M, whereas nnabla-rl's
    figure averages those from 8M to 12M.
    """
    frames = 1_000_000 * millions
    distance = (pl.col("env_frames") - frames).abs()
    at_frames = evaluations.filter(distance <= EVALUATION_WITHIN_FRAMES)
    if frames >= AVERAGED_FROM_FRAMES and len(at_frames):
        return evaluations.filter(distance <= AVERAGED_WITHIN_FRAMES)
    return at_frames


def has_span(evaluations: pl.DataFrame, millions: int) -> bool:
    """Whether a run has come to the end of the frames of which nnabla-rl's figure is the mean.

    `dqn compare` gives no verdict for a run that has not.
    """
    frames = 1_000_000 * millions
    end = frames + AVERAGED_WITHIN_FRAMES if frames >= AVERAGED_FROM_FRAMES else frames
    return bool((evaluations["env_frames"] >= end).any())


def bracketed(figure: Figure | None) -> str:
    """Format a published mean with its lowest and highest seed."""
    if figure is None:
        return "–"
    return f"{number(figure.mean)} [{number(figure.lowest)}, {number(figure.highest)}]"


def verdict_of(score: float, figure: Figure) -> str:
    """Compare a score with the lowest and the highest published seed, as `dqn compare` does.

    Just below and just above are scores that are no further outside than these two are apart.
    """
    assert figure.lowest is not None
    assert figure.highest is not None
    if figure.lowest <= score <= figure.highest:
        return "on track"
    outside = max(figure.lowest - score, score - figure.highest)
    verdict = "below" if score < figure.lowest else "above"
    return f"just {verdict}" if outside <= figure.highest - figure.lowest else verdict


def with_verdict(score: float, verdict: str) -> str:
    """Format a score with its verdict."""
    return f"{number(score)}, {f'**{verdict}**' if verdict in STRONG else verdict}"
