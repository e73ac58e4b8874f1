"""A window that shows games, and its keys, which are held until they are released."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import pygame

from atari_dqn.errors import UserError
from atari_dqn.play.keyboard import QUIT
from atari_dqn.play.live_game import Screen

GAME_PIXELS = (640, 480)
"""Width and height of a game, 4 : 3 as on a television."""
TEXT_PIXELS = 28
"""The height of the lines above and below the games."""
_INVISIBLE_DRIVERS = ("offscreen", "dummy")
"""SDL's drivers that draw into memory alone; it selects one by itself where there is no display."""
_DRIVER_VARIABLES = ("SDL_VIDEODRIVER", "SDL_VIDEO_DRIVER")
"""Environment variables that name a driver; the second is that of SDL 3."""
_NO_DISPLAY = (
    "leave the option out to play in the terminal, or make a video of an agent's games with `dqn record`"
)
_TEXT_COLOUR = (200, 200, 200)
_HELD = {
    pygame.K_UP: "up", pygame.K_DOWN: "down", pygame.K_RIGHT: "right", pygame.K_LEFT: "left",
    pygame.K_w: "up", pygame.K_s: "down", pygame.K_d: "right", pygame.K_a: "left", pygame.K_SPACE: "fire",
}  # fmt: skip


class WindowKeys:
    """The keys of the window, each held until it is released or the window loses the keyboard."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self._held: set[int] = set()

    def poll(self) -> None:
        """Take in what was done since the last call; closing the window quits the games."""
        for event in pygame.event.get():
            if event.type == pygame.QUIT:
                self.commands.append(QUIT)
            elif event.type == pygame.KEYDOWN and event.key in _HELD:
                self._held.add(event.key)
            elif event.type == pygame.KEYDOWN and event.unicode:
                self.commands.append(event.unicode)
            elif event.type == pygame.KEYUP:
                self._held.discard(event.key)
            elif event.type == pygame.WINDOWFOCUSLOST:
                self._held.clear()

    def held(self) -> set[str]:
        """Return the names of the keys that are held."""
        return {_HELD[key] for key in self._held}


class Window:
    """A window with games next to each other, a line of facts above each, and a line of help below.

    `UserError` where there is no display.
    """

    def __init__(self, help_line: str) -> None:
        self.keys, self._help_line = WindowKeys(), help_line
        try:
            pygame.display.init()
        except pygame.error as error:
            raise UserError(f"--window: there is no display here ({error}); {_NO_DISPLAY}") from error
        driver = pygame.display.get_driver()
        if driver in _INVISIBLE_DRIVERS and not any(map(os.environ.get, _DRIVER_VARIABLES)):
            pygame.display.quit()
            raise UserError(f"--window: there is no display here; {_NO_DISPLAY}")

    def __enter__(self) -> Self:
        """Open the window."""
        pygame.font.init()
        self._font = pygame.font.Font(None, TEXT_PIXELS - 4)
        pygame.display.set_caption("dqn play")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the window."""
        pygame.quit()

    def show(self, facts: Sequence[str], screens: Sequence[Screen]) -> None:
        """Replace what is shown by a screen of each game, with a line of facts for each."""
        width, height = GAME_PIXELS
        whole = self._surface((width * len(screens), height + 2 * TEXT_PIXELS))
        whole.fill("black")
        for place, (text, screen) in enumerate(zip(facts, screens, strict=True)):
            picture = pygame.surfarray.make_surface(screen.swapaxes(0, 1))
            whole.blit(pygame.transform.scale(picture, GAME_PIXELS), (width * place, TEXT_PIXELS))
            self._write(whole, text, (width * place + 4, 4))
        self._write(whole, self._help_line, (4, height + TEXT_PIXELS + 4))
        pygame.display.flip()

    def _surface(self, size: tuple[int, int]) -> pygame.Surface:
        """Return the window's surface; it is opened with the size that the games need."""
        found = pygame.display.get_surface()
        return found if found is not None and found.get_size() == size else pygame.display.set_mode(size)

    def _write(self, surface: pygame.Surface, text: str, place: tuple[int, int]) -> None:
        surface.blit(self._font.render(text, True, _TEXT_COLOUR), place)
