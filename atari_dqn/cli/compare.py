"""`dqn compare`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from atari_dqn.cli.named import refuse_outputs
from atari_dqn.compare.comparison import Comparison, compare, compare_readable
from atari_dqn.compare.document import comparison_csv, comparison_document
from atari_dqn.compare.reference.studies import HUMAN_TABLES
from atari_dqn.errors import UserError
from atari_dqn.files.atomic import json_document, write_atomically
from atari_dqn.run.folders import expand_run_paths
from atari_dqn.spec.numbers import whole_number
from atari_dqn.view.comparison import comparison_view
from atari_dqn.view.safe import Safe


def compare_runs(
    paths: Sequence[Path],
    *,
    strict: bool,
    at: str | None,
    to_score: float | None,
    human_table: str,
    json: Path | None,
    csv: Path | None,
    plot: Path | None,
    html: Path | None,
) -> None:
    """Compare runs; print the tables and write the files that are asked for.

    Paths that cannot be compared are named and left out; `strict` refuses them.
    """
    wanted = ((json, _write_json), (csv, _write_csv), (plot, _write_plot), (html, _write_html))
    outputs = [(path, write) for path, write in wanted if path is not None]
    refuse_outputs([path for path, _ in outputs])
    _check_options(to_score, human_table)
    if plot is not None:
        from atari_dqn.compare.output.plot import require_plotting

        require_plotting(plot)
    chosen = compare if strict else compare_readable
    runs = expand_run_paths(paths)
    comparison = chosen(runs, at_frames=parse_frames(at), to_score=to_score, human_table=human_table)
    Console().print(Safe(comparison_view(comparison)))
    for path, write in outputs:
        write(comparison, path)


def parse_frames(text: str | None) -> int | None:
    """Return a number of frames, written as `50_000_000`, `50M` or `820k`; `UserError` for anything else."""
    if text is None:
        return None
    frames = whole_number(text)
    if frames is None or frames < 0:
        raise UserError(f"--at: found {text!r}, expected a number of frames, as 50_000_000, 50M or 820k")
    return frames


def _check_options(to_score: float | None, human_table: str) -> None:
    if to_score is not None and not math.isfinite(to_score):
        raise UserError(f"--to-score: found {to_score}, expected a finite score")
    if human_table not in HUMAN_TABLES:
        raise UserError(f"--human-table: found {human_table!r}, expected {' or '.join(HUMAN_TABLES)}")


def _write_json(comparison: Comparison, path: Path) -> None:
    write_atomically(path, json_document(comparison_document(comparison)))


def _write_csv(comparison: Comparison, path: Path) -> None:
    write_atomically(path, comparison_csv(comparison).encode())


def _write_plot(comparison: Comparison, path: Path) -> None:
    from atari_dqn.compare.output.plot import draw

    draw(comparison, path)


def _write_html(comparison: Comparison, path: Path) -> None:
    from atari_dqn.compare.output.page import page

    write_atomically(path, page(comparison, folder=path.parent).encode())
