"""Our evaluations at the frames of published figures, averaged as these are, and the figures as text."""

from __future__ import annotations

import polars as pl
from keep_pqn import number

from atari_dqn.compare.reference.studies import Figure

EVALUATION_WITHIN_FRAMES = 100_000
"""How far an evaluation may be from the frames of a figure, below `AVERAGED_FROM_FRAMES`."""
AVERAGED_FROM_FRAMES, AVERAGED_WITHIN_FRAMES = 10_000_000, 2_000_000
"""From where nnabla-rl's figures are means of several evaluations, and how far these may be from a figure."""


def evaluations_at(evaluations: pl.DataFrame, millions: int) -> pl.DataFrame:
    """Select the evaluations whose mean is made as the published figure is; none if a run is not so far."""
    frames = 1_000_000 * millions
    distance = (pl.col("env_frames") - frames).abs()
    at_frames = evaluations.filter(distance <= EVALUATION_WITHIN_FRAMES)
    if frames >= AVERAGED_FROM_FRAMES and len(at_frames):
        return evaluations.filter(distance <= AVERAGED_WITHIN_FRAMES)
    return at_frames


def bracketed(figure: Figure | None) -> str:
    """Format a published mean with its lowest and highest seed."""
    if figure is None:
        return "–"
    return f"{number(figure.mean)} [{number(figure.lowest)}, {number(figure.highest)}]"
