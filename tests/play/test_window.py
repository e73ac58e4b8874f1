"""The window shows the games, and its keys are held until they are released."""

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

os.environ["PYGAME_HIDE_SUPPORT_PROMPT"] = "1"
pygame = pytest.importorskip("pygame")

from atari_dqn.errors import UserError  # noqa: E402
from atari_dqn.play.keyboard import HELP_TO_PLAY  # noqa: E402
from atari_dqn.play.window import GAME_PIXELS, TEXT_PIXELS, Window, WindowKeys  # noqa: E402

RED, BLUE = (200, 40, 30), (20, 60, 210)


def screen(colour: tuple[int, int, int]) -> np.ndarray:
    return np.full((210, 160, 3), colour, dtype=np.uint8)


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> Iterator[Window]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    with Window(HELP_TO_PLAY) as opened:
        yield opened


def press(kind: int, key: int, text: str = "") -> None:
    pygame.event.post(pygame.event.Event(kind, key=key, unicode=text))


def held(keys: WindowKeys) -> set[str]:
    keys.poll()
    return keys.held()


def test_games_are_next_to_each_other(window: Window) -> None:
    window.show(["agent 0", "person 0"], [screen(RED), screen(BLUE)])
    shown = pygame.display.get_surface()
    middle = TEXT_PIXELS + GAME_PIXELS[1] // 2
    assert [tuple(shown.get_at((x, middle)))[:3] for x in (0, GAME_PIXELS[0] - 1)] == [RED, RED]
    assert [tuple(shown.get_at((x, middle)))[:3] for x in (GAME_PIXELS[0], 2 * GAME_PIXELS[0] - 1)] == [
        BLUE
    ] * 2


def test_facts_are_above_a_game(window: Window) -> None:
    pictures = []
    for fact in ("person 3", "person 4"):
        window.show([fact], [screen(RED)])
        pictures.append(pygame.surfarray.array3d(pygame.display.get_surface())[:, :TEXT_PIXELS].copy())
    assert not np.array_equal(*pictures)


def test_a_picture_is_upright_and_no_mirror_image(window: Window) -> None:
    corner = screen(BLUE)
    corner[:105, :80] = RED
    window.show(["person 0"], [corner])
    shown = pygame.display.get_surface()
    places = [(x, y) for y in (TEXT_PIXELS, TEXT_PIXELS + 479) for x in (0, 639)]
    assert [tuple(shown.get_at(place))[:3] for place in places] == [RED, BLUE, BLUE, BLUE]


def test_help_is_below_the_games(window: Window) -> None:
    window.show(["person 0"], [screen(RED)])
    shown = pygame.surfarray.array3d(pygame.display.get_surface())
    assert shown[:, -TEXT_PIXELS:].any()


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (pygame.K_UP, "up"), (pygame.K_DOWN, "down"), (pygame.K_LEFT, "left"), (pygame.K_RIGHT, "right"),
        (pygame.K_w, "up"), (pygame.K_s, "down"), (pygame.K_a, "left"), (pygame.K_d, "right"),
    ],
)  # fmt: skip
def test_arrows_and_letters_move(window: Window, key: int, name: str) -> None:
    window.show(["person 0"], [screen(RED)])
    press(pygame.KEYDOWN, key)
    assert held(window.keys) == {name}


def test_key_is_held_until_it_is_released(window: Window) -> None:
    window.show(["person 0"], [screen(RED)])
    press(pygame.KEYDOWN, pygame.K_LEFT)
    press(pygame.KEYDOWN, pygame.K_SPACE, " ")
    assert held(window.keys) == {"left", "fire"}
    press(pygame.KEYUP, pygame.K_LEFT)
    assert held(window.keys) == {"fire"}


def test_nothing_is_held_once_another_window_has_the_keyboard(window: Window) -> None:
    window.show(["person 0"], [screen(RED)])
    press(pygame.KEYDOWN, pygame.K_UP)
    pygame.event.post(pygame.event.Event(pygame.WINDOWFOCUSLOST))
    assert held(window.keys) == set()


def test_other_keys_and_closing_are_commands(window: Window) -> None:
    window.show(["person 0"], [screen(RED)])
    press(pygame.KEYDOWN, pygame.K_p, "p")
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    window.keys.poll()
    assert window.keys.commands == ["p", "q"]


@pytest.mark.parametrize("driver", ["offscreen", "dummy"])
def test_driver_that_shows_nothing_is_no_display(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SDL_VIDEODRIVER", "SDL_VIDEO_DRIVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pygame.display, "init", lambda: None)
    monkeypatch.setattr(pygame.display, "get_driver", lambda: driver)
    with pytest.raises(UserError, match=r"no display here; leave the option out .* `dqn record`"):
        Window(HELP_TO_PLAY)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("driver", "message"), [({}, "; leave the option out"), ({"SDL_VIDEODRIVER": "x11"}, " (")]
)
def test_without_a_display_the_option_is_refused(driver: dict[str, str], message: str) -> None:
    given = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER", "SDL_VIDEO_DRIVER")
    without = {name: value for name, value in os.environ.items() if name not in given}
    words = [sys.executable, "-m", "atari_dqn", "play", "--game", "pong", "--window"]
    done = subprocess.run(words, env=without | driver, capture_output=True, text=True)
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]  # libraries of the system may write lines of their own before it
    assert last.startswith(f"error: --window: there is no display here{message}")
