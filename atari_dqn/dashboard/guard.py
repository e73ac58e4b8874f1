"""Access control of the dashboard: requests from this machine, or requests with the token."""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, parse_qsl, quote, unquote, urlencode, urlsplit

from atari_dqn.machine.loopback import is_loopback

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_COOKIE = "dqn_token"
_REFUSALS = {
    400: b"The request's Host or Origin is malformed.\n",
    403: b"Refused. Open the address that dqn dashboard printed, with its token.\n",
}


class Guard:
    """Pass allowed requests and sockets on to `app`; refuse others.

    Without a token, requests to a local host name are allowed, which excludes DNS rebinding: a foreign name
    that resolves to this machine. With one, the token must be in the address (`?token=…`) or in a cookie. The
    answer to the first stores the cookie and leads to the address without the token, so that no page finds it
    in its address, its history or its referrer. A socket must come from a page of the same host.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self._app, self._token = app, token
        self._cookie = cookie_name(token or "")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        refusal = None if scope["type"] == "lifespan" else self._refusal(scope)
        if refusal is None and self._brings_token(scope):
            await self._store_token(scope, send)
        elif refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            headers = [(b"content-type", b"text/plain; charset=utf-8")]
            await send({"type": "http.response.start", "status": refusal, "headers": headers})
            await send({"type": "http.response.body", "body": _REFUSALS[refusal]})

    def _refusal(self, scope: Scope) -> int | None:
        """Compute the status of a refused request; None for an allowed one."""
        try:
            return None if self._allowed(scope) else 403
        except ValueError:  # urlsplit's, for a malformed address
            return 400

    def _allowed(self, scope: Scope) -> bool:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != headers.get("host"):
            return False
        if self._token is None:
            return is_loopback(urlsplit(f"//{headers.get('host', '')}").hostname or "")
        offered = (_query_token(scope), _cookie_token(headers.get("cookie", ""), self._cookie))
        return any(hmac.compare_digest(each.encode(), self._token.encode()) for each in offered if each)

    def _brings_token(self, scope: Scope) -> bool:
        """Return whether a page is opened by an address with the token."""
        is_page = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        return is_page and self._token is not None and _query_token(scope) == self._token

    async def _store_token(self, scope: Scope, send: Send) -> None:
        """Answer with the cookie, and with the address without the token."""
        assert self._token is not None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        path = "/" + quote(scope["path"].lstrip("/"))  # two slashes would lead to another host
        # Lax, not Strict: the address may be opened by a link on a page of another site
        cookie = f"{self._cookie}={quote(self._token, safe='')}; HttpOnly; SameSite=Lax; Path=/"
        headers = {
            "location": f"{path}?{rest}" if rest else path,
            "set-cookie": cookie,
            "referrer-policy": "no-referrer",
            "cache-control": "no-store",
        }
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": 303, "headers": encoded})
        await send({"type": "http.response.body", "body": b""})


def cookie_name(token: str) -> str:
    """Return the name of the cookie for a token.

    Browsers send the cookies of a host to all of its ports: two dashboards must not replace each other's.
    """
    return f"{_COOKIE}_{hashlib.sha256(token.encode()).hexdigest()[:16]}"


def _query_token(scope: Scope) -> str:
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    return str(query.get("token", [""])[0])


def _cookie_token(header: str, name: str) -> str:
    """Return the token of the cookie with a name; other cookies may have any form."""
    pairs = (part.strip().partition("=") for part in header.split(";"))
    return next((unquote(value) for found, _, value in pairs if found == name), "")
