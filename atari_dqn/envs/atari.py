"""The Arcade Learning Environment (Bellemare et al. 2013), as ale-py ships it."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from pathlib import Path

import numpy as np
from ale_py import Action, ALEInterface, ALEState, LoggerMode
from ale_py.roms import get_rom_path
from jaxtyping import UInt8

from atari_dqn.envs.emulator import NOOP
from atari_dqn.envs.greys import GREYS_OF_ALE_PY, NTSC_GREYS, PAL_ROWS, SAME_GREYS
from atari_dqn.envs.shard import Shard, slot_streams
from atari_dqn.errors import UserError
from atari_dqn.spec.games import MULTI_PLAYER_GAMES, SINGLE_PLAYER_GAMES
from atari_dqn.spec.schema import Env
from atari_dqn.spec.suggest import did_you_mean
from atari_dqn.types import GameInfo, StateDict


def rom_path(game: str) -> Path:
    """Return where a game's ROM lies; `UserError` unless it is one that loads and is played alone."""
    if game in MULTI_PLAYER_GAMES:
        raise UserError(
            f"game {game!r} needs more than one player; expected a single-player game such as 'pong'"
        )
    path = get_rom_path(game) if game in SINGLE_PLAYER_GAMES else None
    if path is None:
        hint = did_you_mean(game, SINGLE_PLAYER_GAMES)
        raise UserError(f"unknown game {game!r}; expected an ale-py ROM id in snake case{hint}")
    return path


def _interface(path: Path) -> ALEInterface:
    """Return an emulator with the ROM loaded and every kind of chance off."""
    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    # stickiness is drawn by the environment: a saved emulator forgets the action it would repeat
    ale.setFloat("repeat_action_probability", 0.0)
    # the default is the time of day
    ale.setInt("random_seed", 0)
    ale.loadROM(path)
    return ale


class AtariEmulator:
    """One `ALEInterface` behind the protocol `Emulator`; `UserError` where its greys are not ours.

    `power_on_reset`: some games' `reset_game` depends on what was played before. With this flag each reset
    starts from the state right after the ROM was loaded, so that an episode depends on its own actions only.
    """

    def __init__(self, path: Path, *, full_action_set: bool, power_on_reset: bool) -> None:
        self._ale = _interface(path)
        self.actions: list[Action] = list(
            self._ale.getLegalActionSet() if full_action_set else self._ale.getMinimalActionSet()
        )
        self.screen_shape: tuple[int, int] = self._ale.getScreenDims()
        ntsc = self.screen_shape[0] < PAL_ROWS
        self.greys = NTSC_GREYS if ntsc else SAME_GREYS
        # The numbers cost a twentieth of the greys, and most of a screen is as it was a step before.
        self.colours = self._ale.getScreen if ntsc else self._ale.getScreenGrayscale
        self._check_greys()
        self._power_on = self._ale.cloneState(include_rng=True) if power_on_reset else None

    def reset(self, episode_seed: int) -> None:  # noqa: ARG002 — the emulator has no chance of its own
        """Begin a new game."""
        if self._power_on is not None:
            self._restore(self._power_on)
        self._ale.reset_game()

    def act(self, action: int) -> float:
        """Play one frame and return its reward."""
        return self._ale.act(self.actions[action])

    def game_over(self) -> bool:
        """Return whether the game has ended."""
        return self._ale.game_over()

    def lives(self) -> int:
        """Return the lives left."""
        return self._ale.lives()

    def rgb(self) -> UInt8[np.ndarray, "H W 3"]:
        """Return the screen in the console's colours (NTSC)."""
        screen: np.ndarray = self._ale.getScreenRGB()
        return screen

    def _check_greys(self) -> None:
        """Raise `UserError` unless our greys are the emulator's own: another version may have other ones."""
        screen = np.empty(self.screen_shape, np.uint8)
        self.colours(screen)
        if not np.array_equal(self.greys[screen], self._ale.getScreenGrayscale()):
            raise UserError(
                f"ale-py {version('ale-py')} has other greys than ale-py {GREYS_OF_ALE_PY}, whose table "
                f"envs/greys.py holds; pip install ale-py=={GREYS_OF_ALE_PY}"
            )

    def _restore(self, state: ALEState) -> None:
        # Twice, a frame apart: the video chip's flag that a clone lacks is set by running once. Without it
        # Q*bert and Tetris run a wrong number of cycles in their first frame.
        self._ale.restoreState(state)
        self._ale.act(self.actions[NOOP])
        self._ale.restoreState(state)

    def state_dict(self) -> StateDict:
        """Return the emulator's serialised state."""
        serialised = self._ale.cloneState(include_rng=True).serialize()
        return {"serialised": np.frombuffer(serialised, np.uint8).copy()}

    def load_state_dict(self, state: StateDict) -> None:
        """Take over a serialised state of the same game."""
        self._restore(ALEState(state["serialised"].tobytes()))


class AtariShard(Shard):
    """Environments of one Atari game."""

    def __init__(
        self,
        *,
        game: str,
        env: Env,
        envs: range,
        num_envs: int,
        seed: int,
        stream: str,
        power_on_reset: bool,
    ) -> None:
        path = rom_path(game)
        emulators = [
            AtariEmulator(path, full_action_set=env.full_action_set, power_on_reset=power_on_reset)
            for _ in envs
        ]
        info = GameInfo(
            game=game,
            action_names=tuple(action.name.lower() for action in emulators[0].actions),
            frame_shape=(env.screen_size_pixels, env.screen_size_pixels),
            rom_md5=hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest(),
        )
        streams = slot_streams(envs=envs, num_envs=num_envs, seed=seed, stream=stream)
        super().__init__(emulators, streams, env, info)
