"""The web server of the dashboard."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from fastapi import FastAPI, HTTPException
from fastapi.responses import FileResponse
from nicegui import ui
from starlette.middleware.gzip import GZipMiddleware

from atari_dqn.dashboard.guard import Guard
from atari_dqn.dashboard.layout import PAGES
from atari_dqn.dashboard.library import Library
from atari_dqn.dashboard.pages.ablations import ablations_page
from atari_dqn.dashboard.pages.curves import curves_page
from atari_dqn.dashboard.pages.diff import diff_page
from atari_dqn.dashboard.pages.games import games_page
from atari_dqn.dashboard.pages.live import live_page
from atari_dqn.dashboard.pages.overview import overview_page
from atari_dqn.dashboard.pages.replay import replay_page
from atari_dqn.dashboard.pages.sweeps import sweeps_page
from atari_dqn.dashboard.pages.videos import MEDIA, WEB_PAGES, videos_page
from atari_dqn.errors import UserError
from atari_dqn.formatting import printable
from atari_dqn.machine.loopback import is_loopback
from atari_dqn.run.folders import WEB_PAGE

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_PAGES: dict[str, Callable[[Library], None]] = {
    "/": overview_page,
    "/curves": curves_page,
    "/live": live_page,
    "/sweeps": sweeps_page,
    "/videos": videos_page,
    "/games": games_page,
    "/ablations": ablations_page,
    "/diff": diff_page,
    "/replay": replay_page,
}
_READING = ["GET", "HEAD"]
_VIDEO = ".mp4"
_WEB_TYPES = {".html", ".css", ".js"}
_WEB_POLICY = (
    "sandbox allow-scripts allow-same-origin; default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src data:"
)
"""The scripts of a page by `dqn export --web` get no data of the dashboard: they can request nothing, and no
address that they can read has the token (`Guard`)."""
_CONNECT_SECONDS = 30.0
"""Time limit for a browser to connect after it has loaded a page; a busy machine needs many seconds."""


def application(root: Path, token: str | None) -> ASGIApp:
    """Build the dashboard of the runs below `root`, with access control."""
    library = Library(root)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    @app.api_route(MEDIA + "/{relative:path}", methods=_READING)
    def media(relative: str) -> FileResponse:
        path = library.inside(relative)
        if path is None or path.suffix != _VIDEO:
            raise HTTPException(404)
        return FileResponse(path, media_type="video/mp4")

    @app.api_route(WEB_PAGES + "/{relative:path}", methods=_READING)
    def web_page(relative: str) -> FileResponse:
        path = library.inside(relative)
        if path is None or path.parent.name != WEB_PAGE.parent.name or path.suffix not in _WEB_TYPES:
            raise HTTPException(404)
        return FileResponse(path, headers={"Content-Security-Policy": _WEB_POLICY})

    for address, page in _PAGES.items():
        ui.page(address, title=f"{PAGES[address]} · dqn dashboard")(partial(page, library))
    # On one machine, compressing megabytes of scripts takes longer than sending them.
    compression = None if token is None else GZipMiddleware
    ui.run_with(
        app,
        show_welcome_message=False,
        gzip_middleware_factory=compression,
        reconnect_timeout=_CONNECT_SECONDS,
    )
    return Guard(_with_head_of_pages(app), token)


def _with_head_of_pages(app: ASGIApp) -> ASGIApp:
    """Answer HEAD of a page as GET, the only method that NiceGUI has; the server leaves the body out."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD" and scope["path"] in _PAGES:
            scope = {**scope, "method": "GET"}
        await app(scope, receive, send)

    return answer


def serve(root: Path, *, host: str, port: int, token: str | None, on_listening: Callable[[], None]) -> None:
    """Serve until interrupted; call `on_listening` once the server answers requests.

    `UserError` if the address is in use, or open to other machines without a token.
    """
    if token is None and not is_loopback(host):
        raise UserError(f"--host {host} is open to other machines; expected a token")
    # NiceGUI logs each wrong address as it was requested, with any control characters.
    logging.getLogger("nicegui").setLevel(logging.ERROR)
    config = uvicorn.Config(application(root, token), log_level="warning", timeout_graceful_shutdown=2)
    with _bound(host, port) as listening:
        _Server(config, on_listening).run(sockets=[listening])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_listening: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_listening = on_listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the server, then call `on_listening`."""
        await super().startup(sockets)
        if self.started:
            self._on_listening()


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, UnicodeError, TypeError) as error:  # a name that cannot be one of a host
        listening.close()
        problem = error.strerror if isinstance(error, OSError) else "it is not a host name"
        raise UserError(
            f"cannot serve on {printable(host)}:{port}: {problem}; name another --port or --host"
        ) from None
    return listening
