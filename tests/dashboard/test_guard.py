"""Access with a token that addresses and cookies cannot hold as it is."""

import asyncio
from typing import Any
from urllib.parse import quote

import pytest

from atari_dqn.dashboard.guard import Guard


def answer(token: str, *, query: str = "", cookie: str = "") -> tuple[int, dict[bytes, bytes]]:
    """Return the status and the headers of the answer to one request."""
    sent: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"cookie", cookie.encode("latin-1"))] if cookie else []
    scope: Any = {"type": "http", "headers": headers, "query_string": query.encode("latin-1")}
    asyncio.run(Guard(app, token)(scope, lambda: None, send))  # type: ignore[arg-type,return-value]
    return sent[0]["status"], dict(sent[0]["headers"])


@pytest.mark.parametrize("token", ["a+b/c==", "a;b c", "schlüssel", 'say "x"', "100%41"])
def test_cookie_of_a_token_lets_the_next_request_in(token: str) -> None:
    status, headers = answer(token, query=f"token={quote(token)}")
    assert status == 200
    cookie = headers[b"set-cookie"].decode("latin-1").split("; ")[0]
    assert answer(token, cookie=cookie)[0] == 200
