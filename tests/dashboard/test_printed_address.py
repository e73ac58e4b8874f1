"""The address that `dqn dashboard` prints has its token in a form that an address can hold."""

import os
import socket
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from atari_dqn.cli.dashboard import dashboard
from atari_dqn.dashboard.server import _bound
from atari_dqn.errors import UserError


@pytest.fixture(autouse=True)
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the dashboard listen, and end at once."""
    monkeypatch.setenv("NICEGUI_STORAGE_PATH", os.devnull)
    monkeypatch.setattr("atari_dqn.dashboard.server.serve", lambda *_, on_listening, **__: on_listening())


def test_printed_address_holds_the_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dashboard(tmp_path, token="a+b/c==")
    printed = capsys.readouterr().out.split()[0]
    assert parse_qs(urlsplit(printed).query) == {"token": ["a+b/c=="]}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "::0"])
def test_printed_address_of_every_interface_has_the_name_of_this_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], host: str
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "server")
    dashboard(tmp_path, host=host, port="8000", token="secret")
    assert capsys.readouterr().out == (
        "http://server:8000/?token=secret  (or with another address of this machine; Ctrl-C ends it)\n"
    )


def test_token_that_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--token: is not UTF-8 text"):
        dashboard(tmp_path, token="\udcff")


@pytest.mark.parametrize("host", ["ä..b", "\udcff", "a" * 70])
def test_host_that_cannot_be_a_name_is_refused(host: str) -> None:
    with pytest.raises(UserError, match=r"cannot serve on .*; name another --port or --host"):
        _bound(host, 0)
