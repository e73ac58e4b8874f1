"""`dqn record`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from atari_dqn.cli.named import refuse_outputs, run_named
from atari_dqn.errors import UserError
from atari_dqn.files.atomic import prepare_folder, unused
from atari_dqn.record.recording import Recording, VideoOptions, load_recording, save_recording
from atari_dqn.record.video import require_encoder
from atari_dqn.spec.named_protocols import ProtocolName

OnProgress = Callable[[str, int, int], None]
_RECORDING = ".json"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a user asks of a new recording."""

    protocol: ProtocolName = "run"
    episodes: int = 1
    best_of: int | None = None
    overlay: bool = True
    saliency: bool = False
    scale: int | None = None
    device: str = "auto"


def record(path: Path | None, output: Path | None, wanted: Wanted, *, replay: Path | None) -> None:
    """Record a checkpoint's games as a video, or make the video of a recording again."""
    require_encoder()
    if output is not None:
        _check(output)
    if replay is None:
        if path is None:
            raise UserError("nothing to record; expected RUN_DIR, CHECKPOINT or --replay FILE")
        _record_checkpoint(path, output, wanted)
    elif path is not None or wanted != Wanted():
        raise UserError("--replay makes the same video again: beside it only -o can be given")
    else:
        _replay(replay, output)


def _record_checkpoint(path: Path, output: Path | None, wanted: Wanted) -> None:
    if wanted.best_of is not None and wanted.best_of < wanted.episodes:
        raise UserError(
            f"--best-of: found {wanted.best_of} with --episodes {wanted.episodes}, "
            "expected at least as many games as are to be shown"
        )
    run_named(path)
    from atari_dqn.evaluation.frozen_agent import load_frozen
    from atari_dqn.machine.devices import resolve_device
    from atari_dqn.record.checkpoint_recording import record_checkpoint

    agent = load_frozen(path, resolve_device(wanted.device))
    video = _video_path(output, agent.run.videos / f"step_{agent.step:09d}_{wanted.protocol}.mp4")
    with _progress() as on_progress:
        recording = record_checkpoint(
            agent,
            protocol=wanted.protocol,
            episodes=wanted.episodes,
            best_of=wanted.best_of,
            saliency=wanted.saliency,
            options=VideoOptions(scale=wanted.scale, overlay=wanted.overlay),
            on_progress=on_progress,
        )
        save_recording(recording, video.with_suffix(_RECORDING))
    _render(recording, video)


def _replay(path: Path, output: Path | None) -> None:
    recording = load_recording(path.with_suffix(_RECORDING))
    _render(recording, output or unused(path.with_suffix(".mp4")))


def _render(recording: Recording, video: Path) -> None:
    from atari_dqn.record.video_rendering import render  # draws with packages of the extra `record`

    with _progress() as on_progress:
        render(recording, video, on_progress=lambda done, total: on_progress("video", done, total))
    typer.echo(_text(recording, video))


def _video_path(output: Path | None, default: Path) -> Path:
    """Return where the video goes, once it is clear that it and its recording can be written there."""
    if output is None:
        prepare_folder(default.parent)
        return unused(default.with_suffix(_RECORDING)).with_suffix(".mp4")
    if output.with_suffix(_RECORDING).exists():
        raise UserError(
            f"{output.with_suffix(_RECORDING)} exists and is never overwritten; choose another -o"
        )
    return output


def _check(output: Path) -> None:
    if output.suffix != ".mp4":
        raise UserError(f"-o: found {str(output)!r}, expected a name that ends in .mp4")
    refuse_outputs([output])
    prepare_folder(output.parent)


@contextmanager
def _progress() -> Iterator[OnProgress]:
    """Show a bar on the terminal's error stream for what is being done."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<8}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)
        yield lambda what, done, total: bar.update(task, description=what, completed=done, total=total)


def _text(recording: Recording, video: Path) -> str:
    source = recording.source
    games = [
        f"  game {game.episode}: return {game.result.episode_return:g}, {game.result.length_frames:,} frames,"
        f" {game.result.end_reason.replace('_', ' ')}"
        for game in recording.games
    ]
    return "\n".join(
        [
            f"{video} ({recording.game}, {recording.choice})",
            *games,
            f"  protocol {source.protocol}",
            f"           fingerprint {source.protocol_digest}",
        ]
    )
