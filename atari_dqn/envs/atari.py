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
from atari_dqn.envs.palette import IDENTITY_PALETTE, NTSC_PALETTE, PAL_ROWS, PALETTE_ALE_VERSION
from atari_dqn.envs.shard import Shard, slot_streams
from atari_dqn.errors import UserError
from atari_dqn.spec.games import MULTI_PLAYER_GAMES, SINGLE_PLAYER_GAMES
from atari_dqn.spec.schema import Env
from atari_dqn.spec.suggest import did_you_mean
from atari_dqn.types import GameInfo, StateDict


def rom_path(game: str) -> Path:
    """Return the path of a game's ROM; `UserError` if the game is unknown or has no single-player mode."""
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
    """Create an emulator with the ROM loaded and without randomness of its own."""
    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    # `Environment` implements sticky actions: a saved state of ALE lacks the action that it would repeat
    ale.setFloat("repeat_action_probability", 0.0)
    # by default ALE seeds itself from the time of day
    ale.setInt("random_seed", 0)
    ale.loadROM(path)
    return ale


class AtariEmulator:
    """An `ALEInterface` that implements `Emulator`; `UserError` if its grey levels differ from our palette.

    In some games the state after `reset_game` depends on earlier episodes. With `power_on_reset` each reset
    starts from the state right after the ROM was loaded, so that an episode depends only on its actions.
    """

    def __init__(self, path: Path, *, full_action_set: bool, power_on_reset: bool) -> None:
        self._ale = _interface(path)
        self.actions: list[Action] = list(
            self._ale.getLegalActionSet() if full_action_set else self._ale.getMinimalActionSet()
        )
        self.screen_shape: tuple[int, int] = self._ale.getScreenDims()
        ntsc = self.screen_shape[0] < PAL_ROWS
        self.palette = NTSC_PALETTE if ntsc else IDENTITY_PALETTE
        # Palette indices are read in a twentieth of the time of grey levels, and converted only where they
        # have changed.
        self.write_screen = self._ale.getScreen if ntsc else self._ale.getScreenGrayscale
        self._check_palette()
        self._power_on = self._ale.cloneState(include_rng=True) if power_on_reset else None

    def reset(self, episode_seed: int) -> None:  # noqa: ARG002 — the emulator is deterministic
        """Begin a new game."""
        if self._power_on is not None:
            self._restore(self._power_on)
        self._ale.reset_game()

    def act(self, action: int) -> float:
        """Emulate one frame with the action of that index and return its reward."""
        return self._ale.act(self.actions[action])

    def game_over(self) -> bool:
        """Return whether the game has ended."""
        return self._ale.game_over()

    def lives(self) -> int:
        """Return the lives left."""
        return self._ale.lives()

    def rgb(self) -> UInt8[np.ndarray, "H W 3"]:
        """Return a copy of the screen in RGB."""
        screen: np.ndarray = self._ale.getScreenRGB()
        return screen

    def _check_palette(self) -> None:
        """Raise `UserError` if the palette differs from the one of the installed version of ale-py."""
        screen = np.empty(self.screen_shape, np.uint8)
        self.write_screen(screen)
        if not np.array_equal(self.palette[screen], self._ale.getScreenGrayscale()):
            raise UserError(
                f"ale-py {version('ale-py')} has other grey levels than ale-py {PALETTE_ALE_VERSION}, which "
                f"envs/palette.py is made from; pip install ale-py=={PALETTE_ALE_VERSION}"
            )

    def _restore(self, state: ALEState) -> None:
        # Restored twice, because a saved state lacks a flag of the video chip that emulating a frame sets.
        # Without it Q*bert and Tetris run a wrong number of cycles in their first frame.
        self._ale.restoreState(state)
        self._ale.act(self.actions[NOOP])
        self._ale.restoreState(state)

    def state_dict(self) -> StateDict:
        """Return the serialised state of the emulator."""
        serialised = self._ale.cloneState(include_rng=True).serialize()
        return {"serialised": np.frombuffer(serialised, np.uint8).copy()}

    def load_state_dict(self, state: StateDict) -> None:
        """Restore a serialised state of the same game."""
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
