"""`dqn compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atari_dqn.cli.options import check_outputs, number
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.errors import UserError

if TYPE_CHECKING:
    from atari_dqn.compare.comparison import Comparison

EXAMPLES = """\
dqn compare outputs/*
dqn compare outputs/pong_* --at 1M --html pong.html"""

_STANDARD_OUTPUT = Path("-")


def _human_tables() -> list[str]:
    from atari_dqn.compare.reference.studies import HUMAN_TABLES

    return list(HUMAN_TABLES)


RunPaths = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN_DIR...",
        help="Runs, archives, or folders of them; those that differ in their seed alone are one group.",
    ),
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Fail if a run cannot be compared, instead of leaving it out.")
]
HumanTableOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Human scores to normalise by: atari57 or nature2015.",
        autocompletion=_human_tables,
    ),
]


def compare(
    run_dirs: RunPaths,
    strict: StrictOption = False,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="FRAMES",
            help="Compare at this frame, e.g. 50M. Default: where a group's shortest run ends.",
        ),
    ] = None,
    to_score: Annotated[
        str | None,
        typer.Option(metavar="SCORE", help="Count frames and hours to this score. Default: the human score."),
    ] = None,
    human_table: HumanTableOption = "atari57",
    json: Annotated[
        Path | None,
        typer.Option(metavar="FILE.json", help="Write everything as JSON; to - in place of the tables."),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="Write one row per group as CSV; to - in place of the tables."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png|.svg", help="Draw learning curves.")] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Write one page with tables, curves and videos."),
    ] = None,
) -> None:
    """Compare runs: statistics over seeds, aggregates over games, published scores as references."""
    target = number("--to-score", to_score)
    outputs = ((json, _write_json), (csv, _write_csv), (plot, _write_plot), (html, _write_html))
    _check_outputs(json=json, csv=csv, plot=plot, html=html)
    comparison = _compare(run_dirs, strict=strict, at=parse_frames(at), score=target, table=human_table)
    if _STANDARD_OUTPUT not in (json, csv):
        _print(comparison)
    for path, write in outputs:
        if path is not None:
            write(comparison, path)


def _compare(
    paths: list[Path], *, strict: bool, at: int | None, score: float | None, table: str
) -> Comparison:
    """Compare runs; leave out unreadable ones, or raise their error if `strict`."""
    with interrupts_blocked():
        from atari_dqn.api.comparing import compare as compare_runs

    return compare_runs(paths, strict=strict, at_frames=at, to_score=score, human_table=table)


def _print(comparison: Comparison) -> None:
    """Print the tables."""
    with interrupts_blocked():
        from rich.console import Console

        from atari_dqn.view.comparison_tables import comparison_view
        from atari_dqn.view.safe import Safe

    Console().print(Safe(comparison_view(comparison)))


def _check_outputs(*, json: Path | None, csv: Path | None, plot: Path | None, html: Path | None) -> None:
    """Raise `UserError` for an output that cannot be written; `-` is standard output, for JSON or CSV."""
    if json == csv == _STANDARD_OUTPUT:
        raise UserError("--json -, --csv -: expected one of them; name a file for the other")
    if html == _STANDARD_OUTPUT:
        raise UserError("--html -: expected a file, because its page refers to videos next to it")
    check_outputs([path for path in (json, csv, plot, html) if path not in (None, _STANDARD_OUTPUT)])
    if plot is not None:
        _check_plotting(plot)


def parse_frames(text: str | None) -> int | None:
    """Parse a number of frames, written as `50_000_000`, `50M` or `820k`; `UserError` for anything else."""
    from atari_dqn.spec.numbers import whole_number

    if text is None:
        return None
    frames = whole_number(text)
    if frames is None or frames < 1:
        raise UserError(f"--at: found {text!r}, expected a number of frames such as 50_000_000, 50M or 820k")
    return frames


def _check_plotting(path: Path) -> None:
    with interrupts_blocked():
        from atari_dqn.compare.output.plot import require_plotting

    require_plotting(path)


def _write_json(comparison: Comparison, path: Path) -> None:
    from atari_dqn.compare.document import comparison_document
    from atari_dqn.files.atomic import json_document

    _write(path, json_document(comparison_document(comparison)))


def _write_csv(comparison: Comparison, path: Path) -> None:
    from atari_dqn.compare.document import comparison_csv

    _write(path, comparison_csv(comparison).encode())


def _write(path: Path, data: bytes) -> None:
    """Write a document to a file, or to standard output."""
    from atari_dqn.files.atomic import write_atomically

    if path == _STANDARD_OUTPUT:
        typer.echo(data, nl=False)
    else:
        write_atomically(path, data)


def _write_plot(comparison: Comparison, path: Path) -> None:
    from atari_dqn.compare.output.plot import draw

    draw(comparison, path)


def _write_html(comparison: Comparison, path: Path) -> None:
    from atari_dqn.compare.output.page import page
    from atari_dqn.files.atomic import write_atomically

    write_atomically(path, page(comparison, folder=path.parent).encode())
