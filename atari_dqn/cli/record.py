"""`dqn record`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atari_dqn.cli.options import (
    MOST_EPISODES,
    DeviceOption,
    OptionalCheckpointPath,
    RecordingProtocol,
    check_outputs,
    check_run,
    choice,
    integer,
)
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.errors import UserError
from atari_dqn.formatting import wrapped
from atari_dqn.machine.devices import check_device_name, resolve_device

if TYPE_CHECKING:
    from atari_dqn.record.recording import Recording

EXAMPLES = """\
dqn record outputs/pong_quick_seed1
dqn record outputs/pong_quick_seed1 -o pong.mp4 --best-of 5 --saliency
dqn record --replay pong.mp4 -o again.mp4"""

_RECORDING = ".json"
_ACTIVITY_COLUMNS = 8
_LARGEST_SCALE = 12


def _protocol_names() -> list[str]:
    return list(RecordingProtocol)


OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="OUT.mp4", help="The video. Default: in videos/ of the run."),
]
BestOfOption = Annotated[
    str | None, typer.Option(metavar="N", help="Play this many games and show the best ones.")
]
ProtocolOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="run: the run's own; classic, modern: sticky actions, no-ops, ε and cap of Track A or B.",
        autocompletion=_protocol_names,
    ),
]
OverlayOption = Annotated[
    bool, typer.Option("--overlay/--no-overlay", help="Draw a panel that explains the game.")
]
SaliencyOption = Annotated[
    bool, typer.Option("--saliency", help="Draw the saliency map of the network; slow.")
]
ScaleOption = Annotated[
    str | None,
    typer.Option(
        metavar="N",
        help=f"Video pixels to a screen's pixel, 1 to {_LARGEST_SCALE}. Default: 3, 4 with --no-overlay.",
    ),
]
ReplayOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Make a video again from the recording next to it.")
]


def record(
    path: OptionalCheckpointPath = None,
    output: OutputOption = None,
    episodes: Annotated[str, typer.Option(metavar="N", help="Games to show.")] = "1",
    best_of: BestOfOption = None,
    protocol: ProtocolOption = "run",
    overlay: OverlayOption = True,
    saliency: SaliencyOption = False,
    scale: ScaleOption = None,
    replay: ReplayOption = None,
    device: DeviceOption = "auto",
) -> None:
    """Record games of a checkpoint as a video that browsers play."""
    num_shown = integer("--episodes", episodes, high=MOST_EPISODES)
    num_played = integer("--best-of", best_of, high=MOST_EPISODES)
    pixels = integer("--scale", scale, high=_LARGEST_SCALE)
    chosen = choice("--protocol", protocol, RecordingProtocol)
    check_device_name(device)
    _check_output(output, must_recording_be_free=replay is None)
    if replay is not None:
        others = (path, num_shown, num_played, chosen, overlay, saliency, pixels, device)
        if others != (None, 1, None, "run", True, False, None, "auto"):
            raise UserError("--replay makes the same video again: only -o can be given with it")
        _render_again(replay, output)
        return
    path = _check_games(path, num_shown, num_played)
    with interrupts_blocked():
        from atari_dqn.evaluation.frozen_agent import load_frozen
        from atari_dqn.files.atomic import prepare_folder
        from atari_dqn.record.checkpoint_recording import record_checkpoint
        from atari_dqn.record.recording import VideoOptions
        from atari_dqn.view.bar import progress_bar

    agent = load_frozen(path, resolve_device(device))
    if output is None:
        prepare_folder(agent.run.videos, remedy="name another video with -o")
    look = VideoOptions(scale=pixels, overlay=overlay)
    with progress_bar(width=_ACTIVITY_COLUMNS) as on_progress:
        recording = record_checkpoint(
            agent, protocol=chosen.value, episodes=num_shown, best_of=num_played,
            saliency=saliency, options=look, on_progress=on_progress,
        )  # fmt: skip
    default = agent.run.videos / f"step_{agent.step:09d}_{chosen}{_RECORDING}"
    _render_first(recording, _save(recording, output, default))


def _check_output(output: Path | None, *, must_recording_be_free: bool) -> None:
    """Check that the packages that make videos are installed, and that `output` can be written.

    `must_recording_be_free`: whether the recording next to it must not exist. With `--replay` it may be the
    one that is replayed, whose own video is gone; any other is refused when the copy is written.
    """
    with interrupts_blocked():
        from atari_dqn.files.atomic import prepare_folder
        from atari_dqn.record.video import require_encoder

    require_encoder()
    if output is None:
        return
    if output.suffix != ".mp4":
        raise UserError(f"-o: found {str(output)!r}, expected a name that ends in .mp4")
    check_outputs([output, output.with_suffix(_RECORDING)] if must_recording_be_free else [output])
    prepare_folder(output.parent)


def _check_games(path: Path | None, num_shown: int, num_played: int | None) -> Path:
    """Check the run or checkpoint and the numbers of games; return the path."""
    if path is None:
        raise UserError("nothing to record; expected RUN_DIR, CHECKPOINT or --replay FILE")
    if num_played is not None and num_played < num_shown:
        raise UserError(
            f"--best-of: found {num_played} with --episodes {num_shown}, "
            "expected at least as many games as are to be shown"
        )
    check_run(path)
    return path


def _render_again(path: Path, output: Path | None) -> None:
    """Render the video of a recording again.

    Without an output that is the recording's own video, x.mp4 of x.json, or x_replay.mp4 if x.mp4 exists. Any
    other video than its own gets a copy of the recording, which is removed if rendering fails. With `_replay`
    in its name a run that is being trained does not render the copy: it renders step_N and step_N_M alone.
    """
    with interrupts_blocked():
        from atari_dqn.record.recording import load_recording

    if not path.name:  # `.`, which an empty text becomes, and `/`
        raise UserError(f"--replay: found {str(path)!r}, expected a video with its recording next to it")
    source, own = path.with_suffix(_RECORDING), path.with_suffix(".mp4")
    recording = load_recording(source)
    is_own = output is None or output.resolve() == own.resolve()
    if is_own and not os.path.lexists(own):
        _render(recording, own)
        return
    video = _save(recording, output, source.with_stem(f"{source.stem}_replay"))
    try:
        _render(recording, video)
    except BaseException:
        video.with_suffix(_RECORDING).unlink(missing_ok=True)
        raise


def _save(recording: Recording, output: Path | None, default: Path) -> Path:
    """Write a recording next to its video, and return the path of the video.

    `default`: the recording without an output; it gets a number if it or its video exists.
    """
    from atari_dqn.record.recording import save_numbered, save_recording

    if output is None:
        return save_numbered(recording, default).with_suffix(".mp4")
    save_recording(recording, output.with_suffix(_RECORDING))
    return output


def _render_first(recording: Recording, video: Path) -> None:
    """Render a recording that was just saved; an error names the command that does so later."""
    try:
        _render(recording, video)
    except UserError as error:
        error.add_note(f"the games are kept: `dqn record --replay {shlex.quote(str(video))}` makes the video")
        raise


def _render(recording: Recording, video: Path) -> None:
    """Write the video of a recording and print what it shows."""
    from atari_dqn.record.video_rendering import render  # needs packages of the extra `record`
    from atari_dqn.view.bar import progress_bar

    with progress_bar(width=_ACTIVITY_COLUMNS) as on_progress:
        render(recording, video, on_progress=lambda done, total: on_progress("video", done, total))
    typer.echo(_text(recording, video))


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
            wrapped(source.protocol, first_indent="  protocol ", indent=" " * 11),
            f"           fingerprint {source.protocol_digest}",
        ]
    )
