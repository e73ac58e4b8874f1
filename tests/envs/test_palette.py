import re
from collections.abc import Iterator

import numpy as np
import pytest
from ale_py import ALEState

from atari_dqn.envs.atari import AtariEmulator, rom_path
from atari_dqn.envs.palette import NTSC_PALETTE
from atari_dqn.errors import UserError
from atari_dqn.spec.games import SINGLE_PLAYER_GAMES


def emulator(game: str) -> AtariEmulator:
    one = AtariEmulator(rom_path(game), full_action_set=False, power_on_reset=False)
    one.reset(0)
    return one


def shown(one: AtariEmulator) -> tuple[np.ndarray, np.ndarray]:
    """Return the screen in grey levels of the palette and in those of the emulator."""
    screen = np.empty(one.screen_shape, np.uint8)
    one.write_screen(screen)
    return one.palette[screen], one._ale.getScreenGrayscale()


def test_ntsc_palette_equals_the_emulators_for_every_index():
    pong = emulator("pong")
    for _ in range(70):
        pong.act(1)
    state = pong.state_dict()["serialised"].tobytes()
    numbers = set()
    # a colour register of the video chip is saved as four equal bytes; use the first that colours the screen
    for place in [match.start() for match in re.finditer(rb"(?=([\x01-\xff])\1\1\1)", state)]:
        for number in range(256):
            coloured = state[:place] + bytes([number] * 4) + state[place + 4 :]
            pong._ale.restoreState(ALEState(coloured))
            pong.act(0)
            screen = pong._ale.getScreen()
            if number == 5 and 5 not in screen:
                break
            numbers |= set(np.unique(screen).tolist())
            assert np.array_equal(NTSC_PALETTE[screen], pong._ale.getScreenGrayscale())
        if len(numbers) == 256:
            return
    pytest.fail(f"only {len(numbers)} of 256 numbers were seen")


def screens(game: str, frames: int) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Yield every fourth frame of a random game, in grey levels of the palette and of the emulator."""
    one = emulator(game)
    actions = np.random.default_rng(0).integers(0, len(one.actions), frames // 4)
    for frame in range(frames):
        one.act(int(actions[frame // 4]))
        if one.game_over():
            one.reset(0)
        if frame % 4 == 0:
            yield frame, *shown(one)


@pytest.mark.parametrize("game", ["seaquest", "carnival", "air_raid"])
def test_grey_levels_equal_the_emulators_on_ntsc_and_pal_screens(game):
    for frame, ours, own in screens(game, 400):
        assert np.array_equal(ours, own), f"frame {frame}"


@pytest.mark.slow
@pytest.mark.parametrize("game", SINGLE_PLAYER_GAMES)
def test_grey_levels_equal_the_emulators_in_every_game(game):
    for frame, ours, own in screens(game, 1_000):
        assert np.array_equal(ours, own), f"frame {frame}"


def test_ale_py_with_other_grey_levels_is_refused_with_both_versions(monkeypatch):
    monkeypatch.setattr("atari_dqn.envs.atari.NTSC_PALETTE", NTSC_PALETTE[::-1])
    monkeypatch.setattr("atari_dqn.envs.atari.version", {"ale-py": "0.12.9"}.get)
    with pytest.raises(
        UserError, match=r"ale-py 0\.12\.9 has other grey levels .* pip install ale-py==0\.12\.1"
    ):
        emulator("pong")
