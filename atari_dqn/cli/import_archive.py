"""`dqn import`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from atari_dqn.errors import UserError

EXAMPLES = """\
dqn import pong.dqn
dqn import pong.dqn -o agents/pong"""

ArchivePath = Annotated[Path, typer.Argument(metavar="FILE.dqn", help="An archive by `dqn export`.")]
FolderOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="DIR", help="The new folder. Default: outputs/FILE."),
]


def import_archive(path: ArchivePath, output: FolderOption = None) -> None:
    """Check an archive and unpack it into a folder that other commands take as a run."""
    from atari_dqn.files.new_files import refuse_leading_hyphen
    from atari_dqn.run.archive.archive import check_is_archive, read_archive, unpack_archive

    check_is_archive(path)
    if path.is_dir():
        raise UserError(f"{path}: is imported already; expected a file by `dqn export`")
    folder = output or Path("outputs") / path.stem
    refuse_leading_hyphen(folder, where="-o")
    if os.path.lexists(folder):
        raise UserError(f"{folder} exists and is never overwritten; name another folder with -o")
    unpack_archive(read_archive(path), folder)
    typer.echo(f"{folder}\nplay it:  dqn eval {shlex.quote(str(folder))}")
