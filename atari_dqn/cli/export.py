"""`dqn export`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atari_dqn.cli.options import CheckpointPath, check_outputs, check_run
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.errors import UserError
from atari_dqn.formatting import count

if TYPE_CHECKING:
    from atari_dqn.evaluation.frozen_agent import FrozenAgent

EXAMPLES = """\
dqn export outputs/pong_quick_seed1
dqn export outputs/pong_quick_seed1/checkpoints/best -o pong.dqn
dqn export pong.dqn --onnx pong.onnx --hub pong_hub"""

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


def export(
    path: CheckpointPath, output: OutputOption = None, onnx: OnnxOption = None, hub: HubOption = None
) -> None:
    """Write an agent with its spec, scores and a video into one file, to share it; or as ONNX."""
    check_run(path)
    archive = _archive_path(path, output) if output or not (onnx or hub) else None
    if onnx is not None and onnx.suffix != ".onnx":
        raise UserError(f"--onnx: found {str(onnx)!r}, expected a name that ends in .onnx")
    check_outputs([each for each in (archive, onnx, hub) if each is not None])
    with interrupts_blocked():
        import torch

        from atari_dqn.evaluation.frozen_agent import load_frozen
        from atari_dqn.evaluation.onnx_model import require_onnx

    if onnx is not None:
        require_onnx()
    agent = load_frozen(path, torch.device("cpu"))
    if archive is not None:
        _write_archive(agent, archive)
    if onnx is not None:
        _write_onnx(agent, onnx)
    if hub is not None:
        _write_hub(agent, hub)


def _archive_path(path: Path, output: Path | None) -> Path:
    """Return the path of the archive; `UserError` for an archive of an archive, and for another suffix."""
    from atari_dqn.files.atomic import is_file
    from atari_dqn.run.archive.archive import SUFFIX, is_archive

    if is_archive(path):
        raise UserError(f"{path}: is an archive already; expected a run or a checkpoint, or --onnx or --hub")
    if output is None:
        run = path.resolve().parent.parent if is_file(path / "manifest.json") else path.resolve()
        return Path(f"{run.name}{SUFFIX}")
    if output.suffix != SUFFIX:
        raise UserError(f"-o: found {str(output)!r}, expected a name that ends in {SUFFIX}")
    return output


def _write_archive(agent: FrozenAgent, path: Path) -> None:
    from atari_dqn.evaluation.export import archive_of
    from atari_dqn.run.archive.archive import write_archive

    archive = archive_of(agent)
    write_archive(path, archive.agent, archive.parts)
    typer.echo(f"{path} ({agent.spec.game}, {count(agent.env_frames)} frames, {_megabytes(path)})")


def _write_onnx(agent: FrozenAgent, path: Path) -> None:
    from atari_dqn.evaluation.onnx_check import check_onnx
    from atari_dqn.evaluation.onnx_model import exact_network, onnx_model
    from atari_dqn.files.atomic import write_atomically

    network = exact_network(agent)
    model = onnx_model(agent, network)
    check = check_onnx(model, agent, network)
    write_atomically(path, model)
    typer.echo(f"{path} ({_megabytes(path)}): {check}")


def _write_hub(agent: FrozenAgent, folder: Path) -> None:
    from atari_dqn.evaluation.export import archive_of
    from atari_dqn.run.archive.hub import write_hub_folder
    from atari_dqn.run.archive.opening import opened_run
    from atari_dqn.run.recorded_scores import recorded_scores

    with opened_run(agent.source) as run:
        scores = recorded_scores(run)
    has_video = write_hub_folder(folder, archive_of(agent), scores)
    missing = "" if has_video else "; there is no video of these weights: `dqn record` makes one"
    typer.echo(f"{folder}: README.md, results.json, spec.toml, agent.dqn{missing}")


def _megabytes(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.1f} MB"
