"""Games are shown at their speed, and obey the keyboard."""

from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from tiny import tiny_spec

from atari_dqn.play.half_blocks import games_as_text
from atari_dqn.play.keyboard import HELP_TO_PLAY, Keyboard, Person
from atari_dqn.play.live_game import LiveGame, Screen
from atari_dqn.play.stage import QuitError, Seat, Stage


class Room:
    """A display of 80 × 24, a keyboard on which keys are typed at given times, and a clock."""

    def __init__(
        self,
        typed: Sequence[tuple[float, str]] = (),
        drawing_seconds: float = 0.0,
        thinking_seconds: float = 0.0,
    ) -> None:
        self.time, self.typed, self.pictures = 0.0, list(typed), list[tuple[float, list[str]]]()
        self.drawing_seconds, self.thinking_seconds = drawing_seconds, thinking_seconds
        self.keyboard = Keyboard(self.read, lambda: self.time)

    def show(self, facts: Sequence[str], screens: Sequence[Screen]) -> None:
        lines = games_as_text(facts, screens, (80, 24), help_line=HELP_TO_PLAY, exact=False)
        self.pictures.append((self.time, list(lines)))
        self.time += self.drawing_seconds

    def read(self) -> str:
        self.time += self.thinking_seconds / 2  # read twice a step: by the stage and by the person
        due = "".join(keys for at, keys in self.typed if at <= self.time)
        self.typed = [(at, keys) for at, keys in self.typed if at > self.time]
        return due

    def sleep(self, seconds: float) -> None:
        self.time += seconds

    def play(self, *, speed: float = 1.0, people: int = 1, frame_skip: int = 4) -> list[LiveGame]:
        games = [LiveGame(tiny_spec(f"env.frame_skip={frame_skip}"), 0) for _ in range(people)]
        seats = [
            Seat(name="person", player=Person(self.keyboard, game.info.action_names), game=game)
            for game in games
        ]
        Stage(self, self.keyboard, speed=speed, now=lambda: self.time, sleep=self.sleep).play(seats)
        return games


class Numbered:
    """A game whose screens are numbers: those of the frames of each of its steps."""

    score, lives, action, info = 0.0, 0, 0, SimpleNamespace(action_names=("noop",))

    def __init__(self, *steps: Sequence[int]) -> None:
        self.steps, self.result = list(steps), None

    def begin(self) -> Sequence[int]:
        return [0]

    def step(self, _: object) -> Sequence[int]:
        frames = self.steps.pop(0)
        self.result = None if self.steps else "over"
        return frames


def pictures_of(*games: Numbered) -> list[tuple[int, ...]]:
    """Return the numbers of the screens of each picture."""
    room, pictures = Room(), []
    display = SimpleNamespace(show=lambda _, screens: pictures.append(tuple(screens)))
    seats = [Seat(name="agent", player=None, game=game) for game in games]
    Stage(display, room.keyboard, speed=1.0, now=lambda: room.time, sleep=room.sleep).play(seats)
    return pictures


def test_every_second_frame_and_the_last_of_a_step_are_shown() -> None:
    assert pictures_of(Numbered([1, 2, 3, 4], [5, 6, 7])) == [(2,), (4,), (5,), (7,)]


def test_last_picture_of_a_game_that_is_over_stays_next_to_the_other() -> None:
    found = pictures_of(Numbered([1, 2, 3, 4], [5, 6, 7, 8]), Numbered([11, 12]))
    assert found == [(2, 12), (4, 12), (6, 12), (8, 12)]


@pytest.mark.parametrize("speed", [1.0, 2.0])
def test_pictures_come_at_half_the_frame_rate(speed: float) -> None:
    room = Room()
    room.play(speed=speed)
    assert room.pictures[30][0] - room.pictures[0][0] == pytest.approx(1 / speed)


@pytest.mark.parametrize("frame_skip", [1, 2, 3, 4, 5])
def test_the_87_frames_of_a_game_take_87_sixtieths_of_a_second(frame_skip: int) -> None:
    room = Room()
    room.play(frame_skip=frame_skip)
    assert room.time == pytest.approx(87 / 60)


@pytest.mark.parametrize("drawing_seconds", [1 / 40, 1 / 10])
def test_a_slow_terminal_does_not_slow_the_game_down(drawing_seconds: float) -> None:
    quick, slow = Room(), Room(drawing_seconds=drawing_seconds)
    quick.play()
    slow.play()
    assert slow.time == pytest.approx(quick.time, abs=0.2)


def test_a_slow_machine_still_shows_pictures() -> None:
    quick, slow = Room(), Room(thinking_seconds=1 / 20)
    quick.play()
    slow.play()
    assert len(slow.pictures) > len(quick.pictures) / 3


def test_a_game_goes_on_at_its_speed_after_a_wait_of_the_machine() -> None:
    quick, waiting = Room(), Room()
    quick.play()
    waits = iter([0.0] * 10 + [60.0])

    def read() -> str:
        waiting.time += next(waits, 0.0)
        return ""

    waiting.keyboard = Keyboard(read, lambda: waiting.time)
    waiting.play()
    assert waiting.time == pytest.approx(60.0 + quick.time, abs=0.2)


def test_every_picture_fills_the_terminal_but_not_more() -> None:
    room = Room()
    room.play(people=2)
    assert {len(lines) for _, lines in room.pictures} == {16}
    assert max(line.count("▄") for _, lines in room.pictures for line in lines) == 78


def test_keys_move_what_they_move() -> None:
    still, moved = Room(), Room(typed=[(0.1 * tenth, "d") for tenth in range(10)])
    still.play()
    moved.play()
    assert [lines for _, lines in still.pictures] != [lines for _, lines in moved.pictures]


@pytest.mark.parametrize("key", ["q", "Q"])
def test_q_quits(key: str) -> None:
    room = Room(typed=[(0.5, key)])
    with pytest.raises(QuitError):
        room.play()
    assert room.pictures[-1][0] == pytest.approx(0.5, abs=0.1)


def test_p_pauses_until_it_is_pressed_again() -> None:
    quick, paused = Room(), Room(typed=[(0.5, "p"), (10.5, "p")])
    quick.play()
    paused.play()
    assert paused.pictures[-1][0] - quick.pictures[-1][0] == pytest.approx(10.0, abs=0.1)
    assert sum("paused" not in lines[0] for _, lines in paused.pictures) == len(quick.pictures)


def test_a_pause_draws_the_same_picture_again() -> None:
    room = Room(typed=[(0.5, "p"), (10.5, "p")])
    room.play()
    pictures = [lines for at, lines in room.pictures if 0.6 < at < 10.4]
    assert len(pictures) > 100
    assert len(set(map(tuple, pictures))) == 1
    assert pictures[0][0].rstrip() == "person 1 · 3 lives · paused"


def test_players_of_the_same_game_see_the_same_without_a_key() -> None:
    first, second = Room().play(people=2)
    assert first.result == second.result
