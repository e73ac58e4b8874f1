"""`dqn spec`: show, check and compare specs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from atari_dqn.cli.command import Command, Group
from atari_dqn.cli.options import SetOption
from atari_dqn.cli.tables import print_lines
from atari_dqn.formatting import printable, wrapped

if TYPE_CHECKING:
    from atari_dqn.spec.loader import ResolvedSpec

EXAMPLES = """\
dqn spec show pong_quick --docs
dqn spec check my_run.toml
dqn spec diff pong_trackA outputs/pong_quick_seed1"""
_SHOW_EXAMPLES = """\
dqn spec show pong_quick --docs
dqn spec show pong_trackA --set toggles.double=true"""
_CHECK_EXAMPLES = """\
dqn spec check my_run.toml --set game=breakout"""
_DIFF_EXAMPLES = """\
dqn spec diff pong_trackA pong_trackB
dqn spec diff pong_quick outputs/pong_quick_seed1"""

app = typer.Typer(help="Show, check and compare specs.", cls=Group, rich_markup_mode=None)

SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="A spec, or a run directory.")]


@app.command(cls=Command, epilog=_SHOW_EXAMPLES)
def show(
    spec: SpecArgument,
    overrides: SetOption = None,
    docs: Annotated[bool, typer.Option("--docs", help="Document each key.")] = False,
) -> None:
    """Print the complete spec: the track's keys, with what the spec changes."""
    from atari_dqn.machine.automatic import choices_text, resolve_auto_here
    from atari_dqn.spec.render import resolved_toml

    resolved, choices = resolve_auto_here(_load(spec, overrides), _has_kernels)
    if choices:
        typer.echo(wrapped(choices_text(choices), indent="# ", first_indent="# "))
    typer.echo(resolved_toml(resolved, documented=docs), nl=False)


@app.command(cls=Command, epilog=_CHECK_EXAMPLES)
def check(spec: SpecArgument, overrides: SetOption = None) -> None:
    """Report every error of a spec at once; exit code 2 if there is one."""
    from atari_dqn.machine.automatic import resolve_auto_here

    resolved, _ = resolve_auto_here(_load(spec, overrides), _has_kernels)
    marks = f"; deviates in {', '.join(resolved.deviations)}" if resolved.deviations else ""
    ok = f"{spec}: ok, track {resolved.track_label}, game {resolved.spec.game}{marks}"
    print_lines([printable(ok)])


@app.command(cls=Command, epilog=_DIFF_EXAMPLES)
def diff(left: SpecArgument, right: SpecArgument) -> None:
    """Print the keys in which two complete specs differ, with both values."""
    from rich.console import Console

    from atari_dqn.spec.diff import diff_specs
    from atari_dqn.view.differences import differences_view

    differences = diff_specs(_load(left, None).spec, _load(right, None).spec)
    if not differences:
        typer.echo("no difference")
        return
    console = Console()
    rows = [(each.key, _shown(each.left), _shown(each.right)) for each in differences]
    console.print(differences_view(rows, str(left), str(right), columns=console.width))


def _has_kernels() -> bool:
    from atari_dqn.assembly.acceleration import has_kernels  # it imports torch, which few specs need here

    return has_kernels()


def _load(path: Path, overrides: list[str] | None) -> ResolvedSpec:
    """Load a spec, or that of a run directory; with overrides the latter is a new spec."""
    from atari_dqn.files.atomic import is_file
    from atari_dqn.spec.history import FORMERLY_RECORDED
    from atari_dqn.spec.loader import load_resolved, load_spec

    inside = path / "spec.toml"
    if not is_file(inside):
        return load_spec(path, overrides or [])
    record = _provenance(path)
    if not overrides:
        return load_resolved(inside, record)
    formerly = [f"{key}={record[entry]}" for key, entry in FORMERLY_RECORDED.items() if entry in record]
    return load_spec(inside, [*formerly, *overrides])


def _provenance(run: Path) -> dict[str, Any]:
    """Return the provenance of a run, which has values of earlier versions that were no keys then."""
    from atari_dqn.files.atomic import is_file
    from atari_dqn.run.directory import RunDirectory

    directory = RunDirectory(run)
    return directory.read_provenance() if is_file(directory.provenance) else {}


def _shown(value: object) -> str:
    from atari_dqn.spec.check import show as as_toml

    return "—" if value is None else value if isinstance(value, str) else as_toml(value)
