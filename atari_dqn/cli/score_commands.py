"""Commands about what agents can do: `eval`, `record`, `compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atari_dqn.cli.options import CheckpointPath, DeviceOption, EvaluationProtocol, RecordingProtocol
from atari_dqn.interrupts import interrupts_blocked


def evaluate(
    path: CheckpointPath,
    episodes: Annotated[
        int | None, typer.Option(min=1, help="Games to play. Default: as the run's full evaluations.")
    ] = None,
    protocol: Annotated[
        EvaluationProtocol, typer.Option(help="The run's own, Track A's, Track B's, or the last two.")
    ] = EvaluationProtocol.RUN,
    lanes: Annotated[
        int | None, typer.Option(min=1, help="Games played side by side; changes no result.")
    ] = None,
    device: DeviceOption = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    save: Annotated[
        bool, typer.Option("--save/--no-save", help="Keep the score in the run directory.")
    ] = True,
) -> None:
    """Score a checkpoint, and keep the score in its run's directory."""
    with interrupts_blocked():
        from atari_dqn.cli.evaluate import evaluate as run

    run(
        path,
        protocol=protocol.value,
        episodes=episodes,
        lanes=lanes,
        device=device,
        as_json=json,
        save=save,
    )


def record(
    path: Annotated[
        Path | None,
        typer.Argument(metavar="[RUN_DIR|CHECKPOINT]", help="A run's latest checkpoint, or any one."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="OUT.mp4", help="Default: in videos/ of the run."),
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Games to show.")] = 1,
    best_of: Annotated[
        int | None, typer.Option(min=1, help="Play this many and show the best of them.")
    ] = None,
    protocol: Annotated[
        RecordingProtocol, typer.Option(help="The run's own, Track A's, or Track B's.")
    ] = RecordingProtocol.RUN,
    overlay: Annotated[
        bool, typer.Option("--overlay/--no-overlay", help="A panel that explains the game.")
    ] = True,
    saliency: Annotated[
        bool, typer.Option("--saliency", help="Show where the network looks; takes a while.")
    ] = False,
    scale: Annotated[
        int | None, typer.Option(min=1, max=12, help="Video pixels to a screen's pixel. Default: 3.")
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Make a video again from the recording beside it."),
    ] = None,
    device: DeviceOption = "auto",
) -> None:
    """Record games of a checkpoint as a video that browsers play."""
    with interrupts_blocked():
        from atari_dqn.cli import record as recording

    wanted = recording.Wanted(
        protocol=protocol.value,
        episodes=episodes,
        best_of=best_of,
        overlay=overlay,
        saliency=saliency,
        scale=scale,
        device=device,
    )
    recording.record(path, output, wanted, replay=replay)


def compare(
    run_dirs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN_DIR...",
            help="Runs, or folders of runs; those that differ in their seed alone are one group.",
        ),
    ],
    strict: Annotated[
        bool, typer.Option("--strict", help="Refuse what cannot be compared, in place of leaving it out.")
    ] = False,
    at: Annotated[
        str | None,
        typer.Option(metavar="FRAMES", help="Compare at 50M frames, say. Default: final evaluations."),
    ] = None,
    to_score: Annotated[
        float | None, typer.Option(help="Count frames and hours to this score. Default: a person's.")
    ] = None,
    human_table: Annotated[
        str, typer.Option(help="Human scores to normalise by: atari57 or nature2015.")
    ] = "atari57",
    json: Annotated[Path | None, typer.Option(help="Write everything as JSON.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write a row a group as CSV.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw learning curves into a .png or .svg.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write one page with tables, curves and videos.")] = None,
) -> None:
    """Compare runs: statistics over seeds, aggregates over games, published scores beside them."""
    with interrupts_blocked():
        from atari_dqn.cli.compare import compare_runs as run

    run(
        run_dirs,
        strict=strict,
        at=at,
        to_score=to_score,
        human_table=human_table,
        json=json,
        csv=csv,
        plot=plot,
        html=html,
    )
