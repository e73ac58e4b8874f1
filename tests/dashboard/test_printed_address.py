"""The address that `dqn dashboard` prints has its token in a form that an address can hold."""

import os
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from atari_dqn.cli.dashboard import dashboard


def test_printed_address_holds_the_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NICEGUI_STORAGE_PATH", os.devnull)
    monkeypatch.setattr("atari_dqn.dashboard.server.serve", lambda *_, on_listening, **__: on_listening())
    dashboard(tmp_path, token="a+b/c==")
    printed = capsys.readouterr().out.split()[0]
    assert parse_qs(urlsplit(printed).query) == {"token": ["a+b/c=="]}
