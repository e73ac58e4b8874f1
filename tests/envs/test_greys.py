import re
from collections.abc import Iterator

import numpy as np
import pytest
from ale_py import ALEState

from atari_dqn.envs.atari import AtariEmulator, rom_path
from atari_dqn.envs.greys import NTSC_GREYS
from atari_dqn.errors import UserError
from atari_dqn.spec.games import SINGLE_PLAYER_GAMES


def emulator(game: str) -> AtariEmulator:
    one = AtariEmulator(rom_path(game), full_action_set=False, power_on_reset=False)
    one.reset(0)
    return one


def shown(one: AtariEmulator) -> tuple[np.ndarray, np.ndarray]:
    """Return the screen in our greys and in the emulator's own."""
    screen = np.empty(one.screen_shape, np.uint8)
    one.colours(screen)
    return one.greys[screen], one._ale.getScreenGrayscale()


def test_table_is_the_emulators_own_for_every_number():
    pong = emulator("pong")
    for _ in range(70):
        pong.act(1)
    state = pong.state_dict()["serialised"].tobytes()
    numbers = set()
    # a colour of the video chip is saved as four equal bytes; the first that colours the picture will do
    for place in [match.start() for match in re.finditer(rb"(?=([\x01-\xff])\1\1\1)", state)]:
        for number in range(256):
            coloured = state[:place] + bytes([number] * 4) + state[place + 4 :]
            pong._ale.restoreState(ALEState(coloured))
            pong.act(0)
            screen = pong._ale.getScreen()
            if number == 5 and 5 not in screen:
                break
            numbers |= set(np.unique(screen).tolist())
            assert np.array_equal(NTSC_GREYS[screen], pong._ale.getScreenGrayscale())
        if len(numbers) == 256:
            return
    pytest.fail(f"only {len(numbers)} of 256 numbers were seen")


def screens(game: str, frames: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield every fourth frame of a random game, in our greys and in the emulator's own."""
    one = emulator(game)
    actions = np.random.default_rng(0).integers(0, len(one.actions), frames // 4)
    for frame in range(frames):
        one.act(int(actions[frame // 4]))
        if one.game_over():
            one.reset(0)
        if frame % 4 == 0:
            yield frame, *shown(one)


@pytest.mark.parametrize("game", ["seaquest", "carnival", "air_raid"])
def test_greys_are_the_emulators_own_on_american_odd_and_european_screens(game):
    for frame, ours, own in screens(game, 400):
        assert np.array_equal(ours, own), f"frame {frame}"


@pytest.mark.slow
@pytest.mark.parametrize("game", SINGLE_PLAYER_GAMES)
def test_greys_are_the_emulators_own_in_every_game(game):
    for frame, ours, own in screens(game, 4_000):
        assert np.array_equal(ours, own), f"frame {frame}"


def test_ale_py_with_other_greys_is_refused_with_its_version_and_the_one_to_install(monkeypatch):
    monkeypatch.setattr("atari_dqn.envs.atari.NTSC_GREYS", NTSC_GREYS[::-1])
    monkeypatch.setattr("atari_dqn.envs.atari.version", {"ale-py": "0.12.9"}.get)
    with pytest.raises(UserError, match=r"ale-py 0\.12\.9 has other greys .* pip install ale-py==0\.12\.1"):
        emulator("pong")
