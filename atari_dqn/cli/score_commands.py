"""Commands about what agents can do: `eval`, `record`, `compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atari_dqn.cli.named import run_named
from atari_dqn.cli.options import (
    CheckpointPath,
    DeviceOption,
    EvaluationProtocol,
    JsonOption,
    RecordingProtocol,
    choice,
    integer,
    number,
)
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.machine.devices import check_device_name

_LARGEST_SCALE = 12
_MOST_GAMES = 1_000_000
"""Far more than any protocol asks for; the games' numbers alone fill the memory at a thousand times that."""


def _evaluation_protocols() -> list[str]:
    return list(EvaluationProtocol)


def _recording_protocols() -> list[str]:
    return list(RecordingProtocol)


def _human_tables() -> list[str]:
    from atari_dqn.compare.reference.studies import HUMAN_TABLES

    return list(HUMAN_TABLES)


OptionalCheckpointPath = Annotated[
    Path | None,
    typer.Argument(metavar="RUN_DIR|CHECKPOINT", help="A run, for its latest checkpoint, or one of them."),
]
EvaluationProtocolOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="run: the run's own; classic: Track A's; modern: Track B's; or both of these.",
        autocompletion=_evaluation_protocols,
    ),
]
RecordingProtocolOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="run: the run's own; classic: Track A's; modern: Track B's.",
        autocompletion=_recording_protocols,
    ),
]
ScaleOption = Annotated[
    str | None,
    typer.Option(metavar="N", help=f"Video pixels to a screen's pixel, 1 to {_LARGEST_SCALE}. Default: 3."),
]
ReplayOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Make a video again from the recording beside it.")
]


def evaluate(
    path: CheckpointPath,
    episodes: Annotated[
        str | None,
        typer.Option(metavar="N", help="Games to play. Default: as the run's full evaluations."),
    ] = None,
    protocol: EvaluationProtocolOption = "run",
    envs: Annotated[
        str | None, typer.Option(metavar="N", help="Games played side by side; changes no result.")
    ] = None,
    device: DeviceOption = "auto",
    json: JsonOption = False,
    save: Annotated[
        bool, typer.Option("--save/--no-save", help="Keep the score in the run directory.")
    ] = True,
) -> None:
    """Score a checkpoint, and keep the score in its run's directory."""
    games, side_by_side = integer("--episodes", episodes, high=_MOST_GAMES), integer("--envs", envs)
    chosen = choice("--protocol", protocol, EvaluationProtocol)
    check_device_name(device)
    run_named(path)
    with interrupts_blocked():
        from atari_dqn.cli.evaluate import evaluate as run

    run(
        path,
        protocol=chosen.value,
        episodes=games,
        envs=side_by_side,
        device=device,
        as_json=json,
        save=save,
    )


def record(
    path: OptionalCheckpointPath = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT.mp4", help="Default: in videos/ of the run."),
    ] = None,
    episodes: Annotated[str, typer.Option(metavar="N", help="Games to show.")] = "1",
    best_of: Annotated[
        str | None, typer.Option(metavar="N", help="Play this many and show the best of them.")
    ] = None,
    protocol: RecordingProtocolOption = "run",
    overlay: Annotated[
        bool, typer.Option("--overlay/--no-overlay", help="A panel that explains the game.")
    ] = True,
    saliency: Annotated[
        bool, typer.Option("--saliency", help="Show where the network looks; takes a while.")
    ] = False,
    scale: ScaleOption = None,
    replay: ReplayOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Record games of a checkpoint as a video that browsers play."""
    shown = integer("--episodes", episodes, high=_MOST_GAMES)
    played = integer("--best-of", best_of, high=_MOST_GAMES)
    pixels = integer("--scale", scale, high=_LARGEST_SCALE)
    chosen = choice("--protocol", protocol, RecordingProtocol)
    check_device_name(device)
    with interrupts_blocked():
        from atari_dqn.cli import record as recording

    wanted = recording.Wanted(
        protocol=chosen.value,
        episodes=shown,
        best_of=played,
        overlay=overlay,
        saliency=saliency,
        scale=pixels,
        device=device,
    )
    recording.record(path, output, wanted, replay=replay)


ComparedPaths = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN_DIR...",
        help="Runs, or folders of runs; those that differ in their seed alone are one group.",
    ),
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
    run_dirs: ComparedPaths,
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse what cannot be compared, in place of leaving it out.")
    ] = False,
    at: Annotated[
        str | None,
        typer.Option(metavar="FRAMES", help="Compare at 50M frames, say. Default: final evaluations."),
    ] = None,
    to_score: Annotated[
        str | None,
        typer.Option(metavar="SCORE", help="Count frames and hours to this score. Default: a person's."),
    ] = None,
    human_table: HumanTableOption = "atari57",
    json: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write everything as JSON.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="Write a row a group as CSV.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png|.svg", help="Draw learning curves.")] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Write one page with tables, curves and videos."),
    ] = None,
) -> None:
    """Compare runs: statistics over seeds, aggregates over games, published scores beside them."""
    score = number("--to-score", to_score)
    with interrupts_blocked():
        from atari_dqn.cli.compare import compare_runs as run

    run(
        run_dirs,
        strict=strict,
        at=at,
        to_score=score,
        human_table=human_table,
        json=json,
        csv=csv,
        plot=plot,
        html=html,
    )
