"""The program `dqn`: its commands, and how their errors reach a user.

Exit codes: 0 done · 2 wrong input · 3 halted · 4 damaged files · 130/143 interrupted, after a checkpoint.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from atari_dqn import __version__
from atari_dqn.cli import spec as spec_commands
from atari_dqn.cli.options import (
    CheckpointPath,
    DeviceOption,
    EvaluationProtocol,
    PlainOption,
    RecordingProtocol,
    RunPath,
    SetOption,
    SpecPath,
)

app = typer.Typer(
    name="dqn",
    help="Train, resume and evaluate DQN-family agents on Atari.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(spec_commands.app, name="spec")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"atari_dqn {__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Train, resume and evaluate DQN-family agents on Atari."""


@app.command()
def train(
    spec: SpecPath,
    overrides: SetOption = None,
    run_dir: Annotated[
        Path | None, typer.Option(help="Where the run is kept. Default: outputs/<spec>_seed<seed>.")
    ] = None,
    device: DeviceOption = "auto",
    plan: Annotated[bool, typer.Option("--plan", help="Print memory, disk and time; start nothing.")] = False,
    plain: PlainOption = False,
) -> None:
    """Train an agent as a spec says, into a new run directory."""
    from atari_dqn.cli.train import train as run

    run(spec, overrides or [], run_dir=run_dir, device=device, plan_only=plan, plain=plain)


@app.command()
def resume(
    run_dir: RunPath,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="NAME", help="latest, best or step_…. Default: the latest.")
    ] = None,
    discard_later: Annotated[
        bool, typer.Option("--discard-later", help="Let go of checkpoints after the one named.")
    ] = False,
    frames: Annotated[int | None, typer.Option(help="Raise the budget to this many frames.")] = None,
    device: Annotated[
        str | None, typer.Option(help="auto, cpu, cuda or cuda:N. Default: where the run began.")
    ] = None,
    plain: PlainOption = False,
) -> None:
    """Continue a run from a checkpoint; log rows after it are cut off, and written again."""
    from atari_dqn.cli.train import resume as run

    run(
        run_dir,
        checkpoint=checkpoint,
        discard_later=discard_later,
        frames=frames,
        device=device,
        plain=plain,
    )


@app.command(name="eval")
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


@app.command()
def compare(
    run_dirs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN_DIR...", help="Runs; those that differ in their seed are one group."),
    ],
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
    from atari_dqn.cli.compare import compare_runs as run

    run(
        run_dirs,
        at=at,
        to_score=to_score,
        human_table=human_table,
        json=json,
        csv=csv,
        plot=plot,
        html=html,
    )


@app.command()
def verify(
    run_dir: RunPath,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Play on from latest, best, step_… or beginning. Default: one with another soon after it.",
        ),
    ] = None,
    frames: Annotated[int, typer.Option(min=1, help="Emulator frames to play on for.")] = 10_000,
    device: Annotated[
        str | None, typer.Option(help="auto, cpu, cuda or cuda:N. Default: where the run began.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check every file of a run, and that going on from a checkpoint repeats exactly."""
    from atari_dqn.cli.verify import verify as run

    run(run_dir, checkpoint=checkpoint, frames=frames, device=device, as_json=json)


@app.command()
def bench(
    spec: SpecPath,
    overrides: SetOption = None,
    device: DeviceOption = "auto",
    seconds: Annotated[float, typer.Option(min=1.0, help="How long to train.")] = 10.0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure how fast a spec trains here, where the time goes, and what the hardware could do."""
    from atari_dqn.cli.bench import bench_spec as run

    run(spec, overrides or [], device=device, seconds=seconds, as_json=json)


@app.command()
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
    from atari_dqn.cli.record import Wanted
    from atari_dqn.cli.record import record as run

    wanted = Wanted(
        protocol=protocol.value,
        episodes=episodes,
        best_of=best_of,
        overlay=overlay,
        saliency=saliency,
        scale=scale,
        device=device,
    )
    run(path, output, wanted, replay=replay)


@app.command()
def doctor() -> None:
    """Say what this machine has, and which settings suit it."""
    from atari_dqn.cli.doctor import doctor as run

    run()


def main() -> None:
    """Run the program; end with the exit code its errors carry, and never with a traceback for a user's."""
    from atari_dqn.errors import DamagedError, HaltedError, InterruptedRunError, UserError

    try:
        app()
        sys.stdout.flush()
    except (UserError, HaltedError, DamagedError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - the program's own output
        sys.exit(error.exit_code)
    except InterruptedRunError as interruption:
        print("\n".join([str(interruption), *interruption.__notes__]), file=sys.stderr)  # noqa: T201
        sys.exit(interruption.exit_code)
    except KeyboardInterrupt:
        print("interrupted; nothing was saved after the last checkpoint", file=sys.stderr)  # noqa: T201
        sys.exit(130)
    except OSError as error:
        _leave_stdout(error)


def _leave_stdout(error: OSError) -> None:
    """End after output that nobody reads, which is no fault, or that cannot be written, which is one."""
    if error.filename is not None:
        raise error
    # Or the last flush of the interpreter would fail too.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        sys.exit(0)
    print(f"error: cannot write the output: {error.strerror}", file=sys.stderr)  # noqa: T201
    sys.exit(2)
