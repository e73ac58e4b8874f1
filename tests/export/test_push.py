"""`dqn export --hub DIR --push OWNER/NAME` against a local stand-in of the hub's HTTP interface."""

import base64
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from tiny import FEW_STEPS, run

from atari_dqn.cli.app import main

constants = pytest.importorskip("huggingface_hub.constants")
TOKEN = "hf_planted"


@dataclass
class Hub:
    """What the stand-in got."""

    address: str = ""
    refuses: bool = False
    created: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)

    def answer(self, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        if self.refuses:
            return 403, {"error": "you may not write here"}
        if path == "/api/repos/create":
            self.created.append(json.loads(body))
            return 200, {"url": f"{self.address}/me/pong"}
        if path == "/api/validate-yaml":
            return 200, {}
        if path == "/api/models/me/pong/preupload/main":
            names = [each["path"] for each in json.loads(body)["files"]]
            modes = [{"path": name, "uploadMode": "regular", "shouldIgnore": False} for name in names]
            return 200, {"files": modes}
        if path == "/api/models/me/pong/commit/main":
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            return 200, {"commitUrl": f"{self.address}/me/pong/commit/1", "commitOid": "1", "success": True}
        return 404, {"error": f"unexpected: {path}"}


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    found = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            found.tokens.add(self.headers["authorization"])
            status, answer = found.answer(self.path, body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.address = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(constants, "ENDPOINT", found.address)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield found
        server.shutdown()


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("outputs") / "run"
    run(path, *FEW_STEPS)
    return path


def export(*arguments: object) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["dqn", "export", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_a_push_uploads_every_file_of_the_folder(
    hub: Hub, agent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "hub"
    assert export(agent, "--hub", folder, "--push", "me/pong") == 0
    assert hub.files == {path.name: path.read_bytes() for path in folder.iterdir()}
    assert [(each["organization"], each["name"]) for each in hub.created] == [("me", "pong")]
    assert hub.tokens == {f"Bearer {TOKEN}"}
    assert capsys.readouterr().out.splitlines()[-1] == f"{hub.address}/me/pong"


def test_a_hub_that_refuses_leaves_the_folder(
    hub: Hub, agent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.refuses = True
    assert export(agent, "--hub", tmp_path / "hub", "--push", "me/pong") == 2
    error = capsys.readouterr().err
    assert error.startswith("error: --push me/pong: ")
    assert "you may not write here" in error
    assert (tmp_path / "hub" / "README.md").exists()


def test_a_refused_push_names_the_command_that_uploads_the_folder(
    hub: Hub, agent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hub.refuses = True
    folder = tmp_path / "of a hub"
    assert export(agent, "--hub", folder, "--push", "me/pong") == 2
    assert f"`hf upload me/pong '{folder}' .` uploads it" in " ".join(capsys.readouterr().err.split())


def test_a_push_without_a_login_is_refused_before_anything_is_written(
    hub: Hub, agent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no token"))
    assert export(agent, "--hub", tmp_path / "hub", "--push", "me/pong") == 2
    assert "run `hf auth login`" in capsys.readouterr().err
    assert not (tmp_path / "hub").exists()


def test_a_push_without_the_package_names_the_extra(
    agent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert export(agent, "--hub", tmp_path / "hub", "--push", "me/pong") == 2
    assert "pip install 'atari-dqn[hub]'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["pong", "me/pong/1", "me pong/1", ""])
def test_a_malformed_name_is_refused(
    agent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert export(agent, "--hub", tmp_path / "hub", "--push", name) == 2
    assert "expected OWNER/NAME" in capsys.readouterr().err


def test_a_push_without_a_folder_is_refused(agent: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export(agent, "--push", "me/pong") == 2
    assert "--hub DIR" in capsys.readouterr().err
