"""`dqn dashboard`."""

from __future__ import annotations

import os
import secrets
from importlib.util import find_spec
from pathlib import Path

import typer

from atari_dqn.errors import UserError


def dashboard(root: Path, *, host: str, port: int, token: str | None) -> None:
    """Serve the runs below a folder; to other machines only with a token."""
    if not root.is_dir():
        raise UserError(f"{root}: no such folder; expected one that holds run directories")
    if find_spec("nicegui") is None:
        raise UserError("dqn dashboard needs nicegui; install it with `pip install 'atari-dqn[dashboard]'`")
    # NiceGUI keeps a folder of its own where it is started; nothing here needs one to be made.
    os.environ.setdefault("NICEGUI_STORAGE_PATH", os.devnull)
    from atari_dqn.dashboard.guard import is_loopback
    from atari_dqn.dashboard.server import serve

    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(24)
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}/{f'?token={token}' if token else ''}"
    serve(
        root,
        host=host,
        port=port,
        token=token,
        on_listening=lambda: typer.echo(f"{address}  (Ctrl-C ends it)"),
    )
