"""`dqn play` in a terminal, and what it refuses."""

import json
import os
import pty
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from exported import export
from killing import DQN
from tiny import CPU, run_once

from atari_dqn.cli import play
from atari_dqn.cli.app import app
from atari_dqn.errors import UserError
from atari_dqn.evaluation.frozen_agent import load_frozen


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_once(tmp_path_factory.mktemp("runs"))


def in_terminal(*words: str, cwd: Path, keys: bytes = b"") -> tuple[int, str]:
    """Run `dqn` with a terminal of 80 × 24 as its input and output; type `keys` when it shows a game."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm-256color"}
    program = subprocess.Popen(
        [*DQN, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=cwd
    )
    os.close(theirs)
    shown, typed, until = b"", not keys, time.monotonic() + 60
    while time.monotonic() < until:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                shown += os.read(ours, 65_536)
            except OSError:  # the program has closed the terminal
                break
        if not typed and "▄".encode() in shown:
            os.write(ours, keys)
            typed = True
    os.close(ours)
    return program.wait(timeout=30), shown.decode(errors="replace")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["run", "archive"])
def test_an_agents_games_are_shown_and_scored_as_its_evaluation(
    trained: Path, tmp_path: Path, form: str
) -> None:
    path, folder = trained, trained / "evaluations"
    if form == "archive":
        path, folder = tmp_path / "agent.dqn", tmp_path / "agent_results" / "evaluations"
        export(load_frozen(trained, CPU), path)
    before = set(folder.glob("*.json"))
    status, shown = in_terminal("play", str(path), "--episodes", "2", "--speed", "100", cwd=tmp_path)
    assert status == 0, shown
    (saved,) = set(folder.glob("*.json")) - before
    evaluated = subprocess.run(
        [*DQN, "eval", str(trained), "--episodes", "2", "--json", "--no-save"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    (score,) = json.loads(evaluated.stdout)["scores"]
    live = json.loads(saved.read_text())
    assert (live["returns"], live["protocol_digest"]) == (score["returns"], score["protocol_digest"])


@pytest.mark.slow
def test_games_in_a_window_are_scored_as_in_a_terminal(trained: Path, tmp_path: Path) -> None:
    words = [*DQN, "play", str(trained), "--speed", "100", "--no-save"]
    status, shown = in_terminal(*words[len(DQN) :], cwd=tmp_path)
    assert status == 0, shown
    window = subprocess.run(
        [*words, "--window"], env={**os.environ, "SDL_VIDEODRIVER": "dummy"}, capture_output=True, text=True
    )
    assert (window.returncode, window.stderr) == (0, "")
    assert window.stdout.strip() == shown.splitlines()[-1].rpartition("\x1b[?1049l")[2].strip()


@pytest.mark.slow
def test_a_persons_game_is_kept_if_the_agents_cannot_be(trained: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "run", symlinks=True, ignore=lambda *_: ["evaluations"]))
    (run / "evaluations").write_text("no folder")
    status, shown = in_terminal("play", str(run), "--player", "both", "--speed", "100", cwd=tmp_path)
    assert status == 2, shown
    assert "then `dqn eval` plays the same games again" in " ".join(shown.split())
    assert len([*(run / "plays").glob("*.json")]) == 1


@pytest.mark.parametrize("player", ["agent", "both", "person"])
def test_keys_that_move_are_named_only_if_a_person_plays(
    trained: Path, monkeypatch: pytest.MonkeyPatch, player: str
) -> None:
    lines = []

    def no_terminal(help_line: str) -> None:
        lines.append(help_line)
        raise UserError("no terminal here")

    monkeypatch.setattr(play, "_terminal", no_terminal)
    with pytest.raises(UserError, match="no terminal here"):
        play.play(trained, player=player)
    (line,) = lines
    assert line.startswith("q quits · p pauses")
    assert ("arrows" in line) == (player != "agent")


@pytest.mark.slow
def test_a_person_who_quits_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    status, shown = in_terminal("play", "--game", "pong", cwd=tmp_path, keys=b"q")
    assert status == 0, shown
    assert "arrows or WASD move" in shown
    assert "\x1b[?1049l" in shown
    assert shown.rstrip().endswith("person: no game was finished")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "found nothing to play"),
        (("--game", "brekout"), 'did you mean "breakout"'),
        (("--game", "pong", "--player", "both"), "an agent is needed"),
        (("--game", "pong", "--protocol", "run"), "expected classic or modern"),
        (("--game", "pong", "--device", "cpu"), "--device: expected with an agent"),
        (("--game", "pong", "--speed", "0"), "expected a number from 0.01 to 100"),
        (("--game", "pong"), "needs a terminal"),
    ],
)
def test_what_cannot_be_played_is_refused(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UserError, match=said):
        app(["play", *words], standalone_mode=False)
