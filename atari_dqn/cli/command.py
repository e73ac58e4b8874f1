"""Format the help of commands and the errors of their options, independently of the version of typer."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from atari_dqn.errors import UserError
from atari_dqn.spec.suggest import did_you_mean

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 10_000}
"""Settings of every command; the maximal width makes the help as wide as the terminal."""

# typer exports only this subclass of its usage error, and the module of the class differs between versions.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]


class Command(TyperCommand):
    """A command whose help and errors are formatted by this module."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments of the command; `UserError` if they are not valid."""
        ctx.allow_extra_args = True
        try:
            rest = super().parse_args(ctx, args)
        except _USAGE_ERROR as error:
            raise UserError(_problem(self, ctx, error)) from error
        if rest and not ctx.resilient_parsing:
            found = f"found {rest[0]!r}, one argument too many"
            raise UserError(f"{ctx.command_path}: {found}; expected {_usage(self, ctx)}")
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the command's help."""
        _write_help(self, ctx, formatter)


class Group(TyperGroup):
    """A group of commands whose help and errors are formatted by this module."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options before the command; `UserError` if they are not valid."""
        if not any(argument != "--" for argument in args) and not ctx.resilient_parsing:
            self.run_without_command(ctx)
        try:
            return super().parse_args(ctx, args)
        except _USAGE_ERROR as error:
            raise UserError(_problem(self, ctx, error)) from error

    def run_without_command(self, ctx: Any) -> None:
        """Show the help and end the program as after wrong input."""
        typer.echo(ctx.get_help(), err=True)
        ctx.exit(UserError.exit_code)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that the first argument names; `UserError` if there is none."""
        if args[0] not in self.commands and not ctx.resilient_parsing:
            known = f"expected a command: {', '.join(self.commands)}"
            hint = did_you_mean(args[0], self.commands)
            raise UserError(f"{ctx.command_path}: found {args[0]!r}, {known}{hint}")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the group's help, with the first sentence of each command in full."""
        _write_help(self, ctx, formatter)


def _problem(command: Any, ctx: Any, error: Any) -> str:
    """Convert a usage error of typer into a message with the found and the expected value."""
    where, kind = ctx.command_path, type(error).__name__
    options = {name: option for option in command.get_params(ctx) for name in _names(option)}
    if kind == "NoSuchOption":
        hint = did_you_mean(error.option_name, options)
        return f"{where}: found {error.option_name}, expected an option that `{where} --help` lists{hint}"
    if kind == "MissingParameter":
        return f"{where}: {_label(error.param)} is missing; expected {_usage(command, ctx)}"
    if kind == "BadOptionUsage" and error.option_name in options:
        option = options[error.option_name]
        if option.is_flag:
            return f"{where}: {error.option_name} has a value; expected {error.option_name} alone"
        return f"{where}: {error.option_name} has no value; expected {error.option_name} {option.metavar}"
    return f"{where}: {error.format_message()}"


def _usage(command: Any, ctx: Any) -> str:
    return " ".join([ctx.command_path, *_pieces(command)])


def _pieces(command: Any) -> list[str]:
    arguments = [param for param in command.params if param.param_type_name == "argument"]
    shown = [_label(param) if param.required else f"[{_label(param)}]" for param in arguments]
    return ["[OPTIONS]", *shown, *(["COMMAND"] if isinstance(command, Group) else [])]


def _write_help(command: Any, ctx: Any, formatter: Any) -> None:
    formatter.write_usage(ctx.command_path, " ".join(_pieces(command)))
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(command.help)
    shown = [param for param in command.get_params(ctx) if not param.hidden]
    for title, rows in (
        ("Arguments", [_row(param) for param in shown if param.param_type_name == "argument"]),
        ("Options", [_row(param) for param in shown if param.param_type_name == "option"]),
        ("Commands", [(name, part.help) for name, part in getattr(command, "commands", {}).items()]),
    ):
        if rows:
            with formatter.section(title):
                formatter.write_dl(list(dict.fromkeys(rows)))
    if command.epilog:
        with formatter.section("Examples"):
            formatter.write("".join(f"  {line}\n" for line in command.epilog.splitlines()))


def _row(param: Any) -> tuple[str, str]:
    text = "Show this help." if "--help" in param.opts else param.help or ""
    return _label(param), " ".join([text, *_notes(param)])


def _label(param: Any) -> str:
    """Format a parameter for the help: `--set KEY=VALUE`, `--save / --no-save`, `RUN_DIR`."""
    if param.param_type_name == "argument":
        return str(param.metavar)
    names = ", ".join(sorted(param.opts, key=len))
    if param.is_flag:
        return " / ".join([names, *param.secondary_opts])
    return f"{names} {param.metavar}"


def _names(param: Any) -> list[str]:
    return [*param.opts, *param.secondary_opts] if param.param_type_name == "option" else []


def _notes(param: Any) -> list[str]:
    default = param.default
    if param.secondary_opts:
        default = (param.opts if default else param.secondary_opts)[0]
    notes = [f"[default: {default}]"] if isinstance(default, str) else []
    return notes + ([f"[env: {param.envvar}]"] if param.envvar else [])
