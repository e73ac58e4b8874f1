"""`dqn play` that is ended or stopped by a signal: games are kept, and the terminal is as it was."""

import json
import os
import pty
import re
import signal
import subprocess
import termios
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from displayed import Displayed
from killing import DQN
from tiny import tiny_spec

from atari_dqn.cli import play
from atari_dqn.errors import InterruptedRunError
from atari_dqn.play.keyboard import QUIT, Keyboard, Person
from atari_dqn.play.live_game import LiveGame, Player, Screen
from atari_dqn.play.quit_signals import QuitSignals
from atari_dqn.play.stage import Seat

OPEN, CLOSE = b"[?1049h", b"[?1049l"
PICTURE = "▄".encode()


class Place:
    """A display that shows nothing, with a keyboard of which one reading, the 60th by default, has an effect.

    It is read in each of the 22 steps of a game: once, and once more for each person.
    """

    def __init__(self, effect: Callable[[], object], *, at_reading: int = 60) -> None:
        self.keys, self.readings, self.effect = Keyboard(self.read), 0, effect
        self.at_reading = at_reading

    def read(self) -> str:
        self.readings += 1
        if self.readings == self.at_reading:
            self.effect()
        return ""

    def show(self, facts: Sequence[str], screens: Sequence[Screen]) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_games_that_were_finished_before_a_signal_are_kept(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(play, "_terminal", lambda help_line: Place(lambda: signal.raise_signal(number)))
    monkeypatch.setattr(play, "_spec_of", lambda game, seed: tiny_spec())
    with pytest.raises(InterruptedRunError, match=number.name):
        play.play(game="pong", episodes="1000", speed="100")
    (path,) = Path("plays").iterdir()
    assert json.loads(path.read_text())["returns"] == [-2.0]


class EndlessGame(LiveGame):
    """A game whose end is not noticed, so that it goes on with the next one."""

    def step(self, player: Player) -> Sequence[Screen]:
        screens = super().step(player)
        self.result = None
        return screens


def test_a_finished_game_is_kept_if_the_other_player_quits(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(lambda: place.keys.commands.append(QUIT), at_reading=3 * 22 + 10)
    spec = tiny_spec()
    seats = [
        Seat(name=name, player=Person(place.keys, game.info.action_names), game=game)
        for name, game in (("agent", LiveGame(spec, 0)), ("person", EndlessGame(spec, 0)))
    ]
    monkeypatch.setattr(play, "_seats", lambda *_: seats)
    finished = play._play(place, None, spec, play.PlayerName.BOTH, episodes=1, speed=100.0)
    returns = {name: [game.episode_return for game in games] for name, games in finished.items()}
    assert returns == {"agent": [-2.0], "person": []}


def test_a_second_signal_has_no_effect() -> None:
    keys = Keyboard(str)
    with QuitSignals(keys) as signals:
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGHUP):
            signal.raise_signal(number)
    assert (signals.received, keys.commands) == (signal.SIGHUP, ["q"])


def test_signals_have_their_handlers_of_before_after_the_games() -> None:
    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    with QuitSignals(Keyboard(str)):
        pass
    assert [signal.getsignal(number) for number in numbers] == before


def test_a_signal_that_was_ignored_remains_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with QuitSignals(Keyboard(str)) as signals:
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert signals.received is None


class Shown(Displayed):
    """`dqn play --game pong` with a terminal of 80 × 24; `command` is what starts the program.

    At the end of a `with` block, its terminal is closed.
    """

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self.descriptors = [*pty.openpty()]
        self.ours, self.theirs = self.descriptors
        self.settings, self.text = termios.tcgetattr(self.theirs), b""
        environment = {**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm-256color"}
        self.process = subprocess.Popen(
            [*command, "play", "--game", "pong"],
            stdin=self.theirs, stdout=self.theirs, stderr=self.theirs, env=environment, cwd=folder,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self.process.wait(30)

    def close(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = []


@pytest.mark.slow
def test_sigterm_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    with Shown(DQN, tmp_path) as shown:
        shown.read_until(PICTURE)
        shown.process.send_signal(signal.SIGTERM)
        shown.read_until(b"interrupted by SIGTERM")
        assert shown.process.wait(30) == 143
        assert CLOSE in shown.text
        assert termios.tcgetattr(shown.theirs) == shown.settings


@pytest.mark.slow
def test_a_terminal_that_is_closed_ends_the_games(tmp_path: Path) -> None:
    with Shown(DQN, tmp_path) as shown:
        shown.read_until(PICTURE)
        shown.close()
        assert shown.process.wait(30) == 129


SHELL = ("setsid", "--ctty", "bash", "-c", 'set -m; "$@"; stty -a; echo stopped; fg; echo ended $?', "bash")
"""A shell with job control on the terminal, which continues its command once that is stopped."""


@pytest.mark.slow
def test_ctrl_z_gives_the_terminal_back_until_the_games_go_on(tmp_path: Path) -> None:
    with Shown([*SHELL, *DQN], tmp_path) as shown:
        shown.read_until(PICTURE)
        shown.type(b"\x1a")
        shown.read_until(b"stopped\r\n")
        shown.read_until(PICTURE)
        shown.type(b"q")
        shown.read_until(b"ended 0")
    found = re.findall(rb"\[\?1049[hl]|[ -]icanon|stopped\r|ended 0", shown.text)
    assert found == [OPEN, CLOSE, b" icanon", b"stopped\r", OPEN, CLOSE, b"ended 0"]


@pytest.mark.slow
@pytest.mark.usefixtures("sigquit_by_default")
def test_ctrl_backslash_ends_the_games_and_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    script = 'ulimit -c 0; set -m; "$@"; code=$?; stty -a; echo ended $code'
    shell = ("setsid", "--ctty", "bash", "-c", script, "bash")
    with Shown([*shell, *DQN], tmp_path) as shown:
        shown.read_until(PICTURE)
        shown.type(b"\x1c")
        shown.read_until(b"ended 131")
    found = re.findall(rb"\[\?1049[hl]|[ -]icanon|ended 131", shown.text)
    assert found == [OPEN, CLOSE, b" icanon", b"ended 131"]


BACKGROUND = 'set -m; "$@"; bg; until jobs -s | grep -q .; do sleep 0.05; done; stty -a; echo stopped; fg'


@pytest.mark.slow
def test_games_in_the_background_wait_for_the_foreground(tmp_path: Path) -> None:
    shell = ("setsid", "--ctty", "bash", "-c", BACKGROUND, "bash")
    with Shown([*shell, *DQN], tmp_path) as shown:
        shown.read_until(PICTURE)
        shown.type(b"\x1a")
        shown.read_until(b"stopped\r\n")
        shown.read_until(PICTURE)
        shown.type(b"q")
        shown.read_until(b"no game was finished")
    found = re.findall(rb"\[\?1049[hl]|[ -]icanon|stopped\r", shown.text)
    assert found == [OPEN, CLOSE, b" icanon", b"stopped\r", OPEN, CLOSE]
