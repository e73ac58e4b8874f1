"""`dqn export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from atari_dqn.cli.options import CheckpointPath, check_outputs, check_run
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.errors import UserError

EXAMPLES = """\
dqn export outputs/pong_quick_seed1
dqn export outputs/pong_quick_seed1/checkpoints/best -o pong.dqn"""

OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE.dqn", help="The archive. Default: the run's name, here."),
]


def export(path: CheckpointPath, output: OutputOption = None) -> None:
    """Write an agent with its spec, scores and a video into one file, to share it."""
    check_run(path)
    archive = _archive_path(path, output)
    check_outputs([archive])
    with interrupts_blocked():
        import torch

        from atari_dqn.evaluation.export import export_agent
        from atari_dqn.evaluation.frozen_agent import load_frozen

    agent = load_frozen(path, torch.device("cpu"))
    export_agent(agent, archive)
    typer.echo(f"{archive}: {agent.spec.game}, step {agent.step:,}, {archive.stat().st_size / 1e6:.1f} MB")


def _archive_path(path: Path, output: Path | None) -> Path:
    """Return the path of the archive; `UserError` for an archive of an archive, and for another suffix."""
    from atari_dqn.files.atomic import is_file
    from atari_dqn.run.archive.archive import SUFFIX, is_archive

    if is_archive(path):
        raise UserError(f"{path}: is an archive already; expected a run or a checkpoint")
    if output is None:
        run = path.resolve().parent.parent if is_file(path / "manifest.json") else path.resolve()
        return Path(f"{run.name}{SUFFIX}")
    if output.suffix != SUFFIX:
        raise UserError(f"-o: found {str(output)!r}, expected a name that ends in {SUFFIX}")
    return output
