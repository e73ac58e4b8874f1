"""Show games at the speed at which they are played, one or two next to each other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol

from atari_dqn.clock import FRAMES_PER_SECOND
from atari_dqn.play import keyboard
from atari_dqn.play.keyboard import Keys
from atari_dqn.play.live_game import LiveGame, Player, Screen

_FRAMES_PER_PICTURE = 2
_LONGEST_GAP_SECONDS = 1 / 15
"""A picture is shown after this time without one, however late it is."""
_PAUSE_SECONDS = 0.05


class QuitError(Exception):
    """The person at the keyboard ends the games."""


class Display(Protocol):
    """Where pictures are shown: a terminal, or a window."""

    def show(self, facts: Sequence[str], screens: Sequence[Screen], /) -> None:
        """Replace what is shown by a screen of each game, with a line of facts for each."""
        ...


@dataclass(frozen=True, kw_only=True)
class Seat:
    """A player at a game of their own."""

    name: str
    player: Player
    game: LiveGame


class Stage:
    """Plays games in step. `speed` 1 is the emulator's own, 60 frames/s; 2 is twice as fast."""

    def __init__(
        self,
        display: Display,
        keyboard: Keys,
        *,
        speed: float,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._display, self._keyboard = display, keyboard
        self._frame_seconds, self._now, self._sleep = 1 / (FRAMES_PER_SECOND * speed), now, sleep
        self._due = 0.0
        """When the next frame is to be shown."""
        self._shown_at = 0.0
        """When the last picture had been drawn."""

    def play(self, seats: Sequence[Seat]) -> None:
        """Play one game of each seat to its end; raise `QuitError` if it is quit."""
        shown = [seat.game.begin()[-1] for seat in seats]
        self._due = self._shown_at = self._now()
        while any(seat.game.result is None for seat in seats):
            self._handle_commands(seats, shown)
            playing = [index for index, seat in enumerate(seats) if seat.game.result is None]
            steps = [seats[index].game.step(seats[index].player) for index in playing]
            for frames, pictures in _pictures(steps):
                for index, picture in zip(playing, pictures, strict=True):
                    shown[index] = picture
                self._show(seats, shown, frames)

    def _handle_commands(self, seats: Sequence[Seat], screens: Sequence[Screen]) -> None:
        """Quit or pause at the keys for it; wait while the games are paused.

        What is shown is drawn again meanwhile, since a terminal may be resized or left by Ctrl-Z.
        """
        paused = False
        while True:
            self._keyboard.poll()
            while self._keyboard.commands:
                match self._keyboard.commands.pop(0).lower():
                    case keyboard.QUIT:
                        raise QuitError
                    case keyboard.PAUSE:
                        paused = not paused
            if not paused:
                return
            self._display.show([_facts(seat, action="paused") for seat in seats], screens)
            self._sleep(_PAUSE_SECONDS)
            self._due = self._now()

    def _show(self, seats: Sequence[Seat], screens: Sequence[Screen], frames: int) -> None:
        """Show a picture `frames` after the one before; leave it out if late, but not many in succession."""
        picture_seconds = frames * self._frame_seconds
        self._due += picture_seconds
        early = self._due - self._now()
        if early > 0:
            self._sleep(early)
        elif early < -1.0:
            self._due = self._now()  # after a wait of the machine, go on rather than catch up
        if early > -picture_seconds or self._now() - self._shown_at > _LONGEST_GAP_SECONDS:
            self._display.show([_facts(seat) for seat in seats], screens)
            self._shown_at = self._now()


def _facts(seat: Seat, *, action: str = "") -> str:
    game = seat.game
    action = "over" if game.result else action or game.info.action_names[game.action]
    lives = f" · {game.lives} {'life' if game.lives == 1 else 'lives'}" if game.lives else ""
    return f"{seat.name} {game.score:g}{lives} · {action}"


def _pictures(steps: Sequence[Sequence[Screen]]) -> Iterator[tuple[int, tuple[Screen, ...]]]:
    """Yield the screens to show of one step of each game, every second and the last, with their frames.

    The first picture of an odd number of frames is of a single one.
    """
    kept = [screens[(len(screens) - 1) % _FRAMES_PER_PICTURE :: _FRAMES_PER_PICTURE] for screens in steps]
    last = tuple(screens[-1] for screens in kept)
    frames = max(map(len, steps)) % _FRAMES_PER_PICTURE or _FRAMES_PER_PICTURE
    for pictures in zip_longest(*kept):
        ended = zip(pictures, last, strict=True)
        yield frames, tuple(end if picture is None else picture for picture, end in ended)
        frames = _FRAMES_PER_PICTURE
