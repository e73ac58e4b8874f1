"""`dqn compare --json -` and `--csv -` print a document to standard output, in place of the tables."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from atari_dqn.cli.compare import compare
from runs import make_run

Dqn = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return make_run(tmp_path / "run", [10.0])


def test_json_to_standard_output_is_all_that_is_printed(run: Path, capfd: pytest.CaptureFixture[str]):
    compare([run], json=Path("-"))
    assert json.loads(capfd.readouterr().out)["groups"][0]["last"]["n"] == 1


def test_csv_to_standard_output_is_all_that_is_printed(run: Path, capfd: pytest.CaptureFixture[str]):
    compare([run], csv=Path("-"))
    header, row = capfd.readouterr().out.splitlines()
    assert header.split(",")[:2] == ["game", "label"]
    assert row.split(",")[:2] == ["pong", "pong_trackA"]


def test_standard_output_is_no_file(run: Path):
    compare([run], json=Path("-"))
    assert not Path("-").exists()


def test_a_file_is_written_next_to_a_document_on_standard_output(run: Path, tmp_path: Path):
    compare([run], json=Path("-"), csv=tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().startswith("game,label")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--json", "-", "--csv", "-"], "expected one of them"),
        (["--html", "-"], "expected a file"),
        (["--plot", "-"], "expected .png or .svg"),
    ],
)
def test_what_cannot_be_printed_is_refused(dqn: Dqn, run: Path, options: list[str], reason: str):
    code, errors = dqn("compare", run, *options)
    assert (code, reason in errors) == (2, True)
