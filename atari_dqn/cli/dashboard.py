"""`dqn dashboard`."""

from __future__ import annotations

import os
import secrets
import socket
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from atari_dqn.cli.options import integer
from atari_dqn.errors import UserError
from atari_dqn.run.directory import is_run

EXAMPLES = """\
dqn dashboard
dqn dashboard outputs --host 0.0.0.0 --port 8000"""

_LAST_PORT = 65_535


def dashboard(
    root: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A folder of runs. Default: outputs.")
    ] = Path("outputs"),
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="The address to serve on; any but loopback requires the printed token."
        ),
    ] = "127.0.0.1",
    port: Annotated[str, typer.Option(metavar="PORT", help="The port to serve on.")] = "8642",
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN", envvar="DQN_TOKEN", help="Require this token. Default: on loopback, none."
        ),
    ] = None,
) -> None:
    """Show every run below a folder in a browser: curves, videos, comparisons, differences, live."""
    port_number = integer("--port", port, high=_LAST_PORT)
    if not host.strip():
        raise UserError("--host: found no text, expected an address, such as 127.0.0.1")
    if token == "":
        raise UserError("--token: found no text, expected a token; without the option one is made if needed")
    if token is not None and not _is_text(token):
        raise UserError("--token: is not UTF-8 text; expected a token that an address can hold")
    if not root.is_dir():
        raise UserError(f"{root}: no such folder; expected one that holds run directories")
    if is_run(root):
        raise UserError(f"{root}: is a run; name the folder that holds it: {root.resolve().parent}")
    if find_spec("nicegui") is None:
        raise UserError("dqn dashboard needs nicegui; install it with `pip install 'atari-dqn[dashboard]'`")
    # NiceGUI makes a folder for stored values where it is started; the dashboard stores none.
    os.environ.setdefault("NICEGUI_STORAGE_PATH", os.devnull)
    from atari_dqn.dashboard.server import serve
    from atari_dqn.machine.loopback import is_loopback

    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(24)
    show_address = partial(typer.echo, _address_line(host, port_number, token))
    with suppress(KeyboardInterrupt):  # ends the dashboard, which has nothing to save
        serve(root, host=host, port=port_number, token=token, on_listening=show_address)


def _address_line(host: str, port: int, token: str | None) -> str:
    """Return the address of the dashboard, with its token, for the user to open."""
    is_every = _is_every_address(host)
    reached = socket.gethostname() if is_every else host
    shown_host = f"[{reached}]" if ":" in reached else reached
    address = f"http://{shown_host}:{port}/{f'?token={quote(token)}' if token else ''}"
    others = "or with another address of this machine; " if is_every else ""
    return f"{address}  ({others}Ctrl-C ends it)"


def _is_every_address(host: str) -> bool:
    """Return whether an address stands for all those of this machine; no browser elsewhere opens it."""
    with suppress(ValueError):
        return ip_address(host).is_unspecified
    return False


def _is_text(argument: str) -> bool:
    """Return whether an argument of the command line is UTF-8 text."""
    return argument.encode(errors="ignore").decode() == argument
