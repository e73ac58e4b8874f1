"""What the live view costs: processor time to take in the rows of a real run, and to draw the screen.

The rows are those of `docs/results/pong_quick`; the terminal has 80×24 characters, then 200×60.
The view draws once a second, so that milliseconds a drawing, over 10, are the percentage of a core that
drawing takes.
"""

from __future__ import annotations

import argparse
import io
import json
import math
import time
from pathlib import Path

from atari_dqn.compare.reference.agents import subject_of
from atari_dqn.spec.loader import load_spec
from atari_dqn.telemetry.columns import column_names
from atari_dqn.telemetry.events import Row
from atari_dqn.view.live import LiveView
from hardware import circumstances

import polars as pl
from rich.console import Console

ROOT = Path(__file__).parents[1]
SPEC, RUN = ROOT / "runs" / "pong_quick.toml", ROOT / "docs" / "results" / "pong_quick"
TABLES = ("train_log", "update_log", "throughput_log", "eval_log")
DRAWINGS = 50
SIZES = ((80, 24), (200, 60))


def rows() -> list[Row]:
    """Return the run's rows, in the order of its steps; a column that came later is empty."""
    found: list[Row] = []
    for table in TABLES:
        empty = dict.fromkeys(column_names(table), math.nan)
        lines = pl.read_csv(RUN / f"{table}.csv").fill_null(math.nan).to_dicts()
        found += (Row(table=table, values=empty | line) for line in lines)
    return sorted(found, key=lambda row: row.values["step"])


def measure(columns: int, lines: int, seconds_of_run: float) -> dict[str, float]:
    """Return the view's cost on a terminal of that size."""
    resolved = load_spec(SPEC)
    console = Console(
        file=io.StringIO(), force_terminal=True, width=columns, height=lines, legacy_windows=False
    )
    view = LiveView(
        title="pong_quick",
        total_frames=resolved.spec.training.total_frames,
        subject=subject_of(resolved.spec),
        console=console,
        refreshes_per_second=1e-3,  # the drawing is done here
    )
    events = rows()
    began = time.thread_time()
    for row in events:
        view.handle(row)
    handled = time.thread_time() - began
    began = time.thread_time()
    for _ in range(DRAWINGS):
        console.print(view.draw(), height=lines)
    drawn = time.thread_time() - began
    view.close()
    draw_seconds = drawn / DRAWINGS
    return {
        "columns": columns,
        "lines": lines,
        "rows": len(events),
        "microseconds_per_row": handled / len(events) * 1e6,
        "milliseconds_per_drawing": draw_seconds * 1e3,
        "share_of_a_core": draw_seconds + handled / seconds_of_run,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args()
    seconds = max(pl.read_csv(RUN / "throughput_log.csv")["elapsed_seconds"].to_list())
    sizes = [measure(*size, seconds_of_run=seconds) for size in SIZES]
    report = {**circumstances(), "sizes": sizes}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(sizes, indent=2))


if __name__ == "__main__":
    main()
