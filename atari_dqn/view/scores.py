"""Format scores for columns of a fixed width: whole where they fit, else with three significant digits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from atari_dqn.compare.reference.caps import MARK
from atari_dqn.formatting import count, score


def fitting_score(value: float, columns: int) -> str:
    """Format a score: `20,182`, or `1.23M` where that needs more columns; at least 6 are expected."""
    text = score(value)
    return text if len(text) <= columns else count(value)


def fitting_marked_score(evaluation: Mapping[str, Any], columns: int) -> str:
    """Format the mean return of a row of eval_log, with a mark after it if the cap truncated games."""
    mark = MARK if evaluation.get("frame_caps", 0) > 0 else ""
    return f"{fitting_score(float(evaluation.get('mean_return', math.nan)), columns)}{mark}"
