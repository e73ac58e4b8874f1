"""The table of a run as a data frame."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from atari_dqn.errors import DamagedError
from atari_dqn.run.recorded_scores import whole_lines
from atari_dqn.telemetry.columns import FORMER_NAMES, TABLES

_INTEGERS = {
    "step", "env_frames", "episode_number", "environment", "episode_length_steps", "episode_length_frames",
    "updates", "episodes", "replay_transitions", "transitions", "game_overs", "frame_caps",
}  # fmt: skip


def read_table(path: Path) -> pl.DataFrame:
    """Read a table of `telemetry.columns`, without a last row that is being written.

    `DamagedError` if it cannot be read.
    """
    data = whole_lines(path)
    header = data.split(b"\n", 1)[0].decode(errors="replace").split(",")
    words = {column.name for column in TABLES[path.stem] if column.is_text}
    names = [FORMER_NAMES.get(name, name) for name in header]
    types = {
        name: pl.String if name in words else pl.Int64 if name in _INTEGERS else pl.Float64 for name in names
    }
    try:
        return pl.read_csv(io.BytesIO(data), new_columns=names, schema_overrides=list(types.values()))
    except PolarsError as error:
        cause = str(error).strip().splitlines()[0]
        raise DamagedError(f"{path}: cannot be read as a table: {cause}") from error
