"""The server of the dashboard."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse
from nicegui import ui
from starlette.middleware.gzip import GZipMiddleware

from atari_dqn.dashboard.guard import Guard, is_loopback
from atari_dqn.dashboard.library import Library
from atari_dqn.dashboard.pages.ablations import ablations_page
from atari_dqn.dashboard.pages.curves import curves_page
from atari_dqn.dashboard.pages.diff import diff_page
from atari_dqn.dashboard.pages.games import games_page
from atari_dqn.dashboard.pages.live import live_page
from atari_dqn.dashboard.pages.replay import replay_page
from atari_dqn.dashboard.pages.videos import MEDIA, videos_page
from atari_dqn.errors import UserError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_PAGES: dict[str, Callable[[Library], None]] = {
    "/": curves_page,
    "/live": live_page,
    "/videos": videos_page,
    "/games": games_page,
    "/ablations": ablations_page,
    "/diff": diff_page,
    "/replay": replay_page,
}
_PLAYED = ".mp4"


def application(root: Path, token: str | None) -> ASGIApp:
    """Return the dashboard of the runs below `root`, guarded."""
    library = Library(root)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    @app.get(MEDIA + "/{relative:path}")
    def media(relative: str) -> FileResponse:
        path = library.inside(relative)
        if path is None or path.suffix != _PLAYED:
            raise HTTPException(404)
        return FileResponse(path, media_type="video/mp4")

    for address, page in _PAGES.items():
        ui.page(address, title="dqn dashboard")(partial(page, library))
    # Within a machine, packing megabytes of scripts takes longer than handing them over.
    packing = None if token is None else GZipMiddleware
    ui.run_with(app, show_welcome_message=False, gzip_middleware_factory=packing)
    return Guard(app, token)


def serve(root: Path, *, host: str, port: int, token: str | None) -> None:
    """Serve until interrupted. `UserError` where the address is taken, or open to others without a token."""
    import uvicorn

    if token is None and not is_loopback(host):
        raise UserError(f"--host {host} is open to other machines; expected a token")
    _refuse_taken(host, port)
    config = uvicorn.Config(
        application(root, token), host=host, port=port, log_level="warning", timeout_graceful_shutdown=2
    )
    uvicorn.Server(config).run()


def _refuse_taken(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise UserError(
                f"cannot serve on {host}:{port}: {error.strerror}; name another --port or --host"
            ) from None
