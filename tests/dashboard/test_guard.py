"""Access to the dashboard by its address, its token and its cookie."""

import asyncio
from typing import Any
from urllib.parse import quote

import pytest

from atari_dqn.dashboard.guard import Guard, cookie_name


def answer(
    token: str | None, *, path: str = "/", query: str = "", **fields: str
) -> tuple[int, dict[bytes, bytes]]:
    """Return the status and the headers of the answer to one request."""
    sent: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(name.encode(), value.encode("latin-1")) for name, value in fields.items()]
    scope: Any = {
        "type": "http", "method": "GET", "path": path, "headers": headers,
        "query_string": query.encode("latin-1"),
    }  # fmt: skip
    asyncio.run(Guard(app, token)(scope, lambda: None, send))  # type: ignore[arg-type,return-value]
    return sent[0]["status"], dict(sent[0]["headers"])


@pytest.mark.parametrize("token", ["a+b/c==", "a;b c", "schlüssel", 'say "x"', "100%41"])
def test_cookie_of_a_token_lets_the_next_request_in(token: str) -> None:
    status, headers = answer(token, query=f"token={quote(token)}")
    assert status == 303
    cookie = headers[b"set-cookie"].decode("latin-1").split("; ")[0]
    assert answer(token, cookie=cookie)[0] == 200


@pytest.mark.parametrize("other", ['a="x', "a=b c", "=", "a[b]=c", 'a="x;y"', "session=\xe9", "a=1,b=2"])
def test_an_unusual_cookie_of_another_program_does_not_hide_that_of_the_token(other: str) -> None:
    cookie = answer("abc", query="token=abc")[1][b"set-cookie"].decode("latin-1").split("; ")[0]
    assert answer("abc", cookie=f"{other}; {cookie}")[0] == 200


def test_scripts_cannot_read_the_cookie_and_other_sites_cannot_post_with_it() -> None:
    cookie = answer("abc", query="token=abc")[1][b"set-cookie"]
    assert set(cookie.split(b"; ")[1:]) == {b"HttpOnly", b"SameSite=Lax", b"Path=/"}


def test_answer_that_stores_the_token_is_in_no_cache() -> None:
    assert answer("abc", query="token=abc")[1][b"cache-control"] == b"no-store"


def test_two_dashboards_of_a_host_have_cookies_of_their_own() -> None:
    tokens = ("abc", "def")
    cookies = [answer(token, query=f"token={token}")[1][b"set-cookie"] for token in tokens]
    both = b"; ".join(cookie.split(b";")[0] for cookie in cookies).decode()
    assert [answer(token, cookie=both)[0] for token in tokens] == [200, 200]


def test_the_name_of_a_cookie_does_not_contain_its_token() -> None:
    assert "abc" not in cookie_name("abc")


@pytest.mark.parametrize("host", ["localhost:8642", "127.0.0.1:8642", "127.0.0.2:8642", "[::1]:8642"])
def test_every_address_of_this_machine_alone_needs_no_token(host: str) -> None:
    assert answer(None, host=host)[0] == 200


def test_name_that_may_be_made_to_lead_here_is_refused() -> None:
    assert answer(None, host="localhost.example:8642")[0] == 403


@pytest.mark.parametrize(
    ("path", "query", "location"),
    [
        ("/", "token=abc", b"/"),
        ("/curves", "token=abc&run=a%20b", b"/curves?run=a+b"),
        ("//evil.example/x", "token=abc", b"/evil.example/x"),
    ],
)
def test_token_is_left_out_of_the_address_that_it_opens(path: str, query: str, location: bytes) -> None:
    headers = answer("abc", path=path, query=query)[1]
    assert headers[b"location"] == location
    assert headers[b"referrer-policy"] == b"no-referrer"


def test_wrong_token_is_refused() -> None:
    assert answer("abc", query="token=abd")[0] == 403
