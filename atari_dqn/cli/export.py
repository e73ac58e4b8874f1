"""`dqn export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atari_dqn.cli.options import CheckpointPath, check_outputs, check_run
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.errors import UserError
from atari_dqn.formatting import count
from atari_dqn.run.checkpoint.names import run_folder

if TYPE_CHECKING:
    from atari_dqn.evaluation.frozen_agent import FrozenAgent

EXAMPLES = """\
dqn export outputs/pong_quick_seed1
dqn export outputs/pong_quick_seed1/checkpoints/best -o pong.dqn
dqn export pong.dqn --onnx pong.onnx
dqn export pong.dqn --hub pong_hub --push OWNER/pong
dqn export outputs/pong_quick_seed1 --web outputs/pong_quick_seed1/web"""

_PLAYBACK = "playback"

OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE.dqn", help="The archive. Default without the others: the run's name."
    ),
]
OnnxOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE.onnx", help="Its network, from frames to q-values, checked in onnxruntime."),
]
HubOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="A folder for a model hub: card, scores, video and archive."),
]
PushOption = Annotated[
    str | None,
    typer.Option(metavar="OWNER/NAME", help="Upload the folder of --hub to this repository; needs a login."),
]
WebOption = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="A page that plays back its recorded games, q-values and saliency."),
]


def export(
    path: CheckpointPath,
    output: OutputOption = None,
    onnx: OnnxOption = None,
    hub: HubOption = None,
    push: PushOption = None,
    web: WebOption = None,
) -> None:
    """Write an agent with its spec, scores and a video into one file, to share it; as ONNX; as a page."""
    check_run(path)
    if push is not None and hub is None:
        raise UserError("--push uploads the folder of --hub; name one with --hub DIR")
    archive = _archive_path(path, output) if output or not (onnx or hub or web) else None
    if onnx is not None and onnx.suffix != ".onnx":
        raise UserError(f"--onnx: found {str(onnx)!r}, expected a name that ends in .onnx")
    check_outputs([each for each in (archive, onnx, hub, web) if each is not None])
    with interrupts_blocked():
        import torch

        from atari_dqn.evaluation.export import newest_video
        from atari_dqn.evaluation.frozen_agent import load_frozen
        from atari_dqn.evaluation.onnx_model import require_onnx
        from atari_dqn.run.archive.hub_upload import require_login

    if onnx is not None:
        require_onnx()
    if push is not None:
        require_login(push)
    agent = load_frozen(path, torch.device("cpu"))
    video = newest_video(agent)
    if web is not None:  # first, because it needs a recording
        _write_web(agent, web)
    if archive is not None:
        _write_archive(agent, video, archive)
    if onnx is not None:
        _write_onnx(agent, onnx)
    if hub is not None:
        _write_hub(agent, video, hub)
        if push is not None:
            _push(hub, push)


def _archive_path(path: Path, output: Path | None) -> Path:
    """Return the path of the archive; `UserError` for an archive of an archive, and for another suffix."""
    from atari_dqn.run.archive.archive import SUFFIX, is_archive

    if is_archive(path):
        raise UserError(
            f"{path}: is an archive already; expected a run or a checkpoint, or --onnx, --hub or --web"
        )
    if output is None:
        return Path(f"{run_folder(path).resolve().name}{SUFFIX}")
    if output.suffix != SUFFIX:
        raise UserError(f"-o: found {str(output)!r}, expected a name that ends in {SUFFIX}")
    return output


def _write_archive(agent: FrozenAgent, video: Path | None, path: Path) -> None:
    from atari_dqn.evaluation.export import archive_of
    from atari_dqn.run.archive.archive import write_archive

    archive = archive_of(agent, video)
    write_archive(path, archive.agent, archive.parts)
    size = _size(path)
    typer.echo(f"{path} ({agent.spec.game}, {count(agent.env_frames)} frames, {size}){_left_out(video)}")


def _write_onnx(agent: FrozenAgent, path: Path) -> None:
    from atari_dqn.evaluation.onnx_check import check_onnx
    from atari_dqn.evaluation.onnx_model import exact_network, onnx_model
    from atari_dqn.files.atomic import write_atomically

    network = exact_network(agent)
    model = onnx_model(agent, network)
    check = check_onnx(model, agent, network)
    write_atomically(path, model)
    typer.echo(f"{path} ({_size(path)}): {check}")


def _write_hub(agent: FrozenAgent, video: Path | None, folder: Path) -> None:
    from atari_dqn.evaluation.export import archive_of
    from atari_dqn.run.archive.hub import write_hub_folder
    from atari_dqn.run.recorded_scores import scores_of

    has_video = write_hub_folder(folder, archive_of(agent, video), scores_of(agent.source))
    missing = "" if has_video else "; there is no video of these weights: `dqn record` makes one"
    typer.echo(f"{folder}: README.md, results.json, spec.toml, agent.dqn{_left_out(video) or missing}")


def _left_out(video: Path | None) -> str:
    """Name a video and its size if it is too large for an archive; empty otherwise."""
    from atari_dqn.evaluation.export import MOST_VIDEO_BYTES, is_oversized

    if video is None or not is_oversized(video):
        return ""
    return f"; {video} is left out: {video.stat().st_size:,} bytes, expected at most {MOST_VIDEO_BYTES:,}"


def _push(folder: Path, repository: str) -> None:
    from atari_dqn.run.archive.hub_upload import push

    typer.echo(push(folder, repository))


def _write_web(agent: FrozenAgent, folder: Path) -> None:
    from atari_dqn.record.checkpoint_recording import newest_recording
    from atari_dqn.record.web.folder import PAGE, write_web_folder
    from atari_dqn.view.bar import progress_bar

    recording = newest_recording(agent)
    with progress_bar(width=len(_PLAYBACK)) as on_progress:
        write_web_folder(
            folder, recording, on_progress=lambda done, total: on_progress(_PLAYBACK, done, total)
        )
    games = "1 game" if len(recording.games) == 1 else f"{len(recording.games)} games"
    typer.echo(f"{folder / PAGE} ({agent.spec.game}, {games}, {_size(*folder.iterdir())})")


def _size(*paths: Path) -> str:
    size = sum(path.stat().st_size for path in paths)
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"
