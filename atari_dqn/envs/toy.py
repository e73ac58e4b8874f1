"""The environments of a toy game: an emulator of a few lines, which needs no ROM."""

from __future__ import annotations

from typing import ClassVar, Protocol

from atari_dqn.envs.emulator import NOOP, Emulator
from atari_dqn.envs.shard import Shard, slot_streams
from atari_dqn.errors import UserError
from atari_dqn.spec.schema import Env
from atari_dqn.types import GameInfo


class EmulatorType(Protocol):
    """The type of a toy game's emulator."""

    def __call__(self, size_pixels: int) -> Emulator:
        """Create an emulator with a square screen."""
        ...


class ToyShard(Shard):
    """Environments of a toy game; a game is a subclass with the three attributes.

    Every reset is a power-on reset, and the full action set is the minimal one.
    """

    emulator_type: ClassVar[EmulatorType]
    game: ClassVar[str]
    """The name of the game, which is also its `env.kind`."""
    action_names: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        *,
        game: str,
        env: Env,
        envs: range,
        num_envs: int,
        seed: int,
        stream: str,
        power_on_reset: bool,  # noqa: ARG002 — each reset of a toy game is one
    ) -> None:
        if game != self.game:
            raise UserError(
                f"unknown game {game!r} for env.kind = {self.game!r}; expected game = {self.game!r}"
            )
        assert self.action_names[NOOP] == "noop"
        size = env.screen_size_pixels
        info = GameInfo(game=game, action_names=self.action_names, frame_shape=(size, size), rom_md5="")
        streams = slot_streams(envs=envs, num_envs=num_envs, seed=seed, stream=stream)
        super().__init__([type(self).emulator_type(size) for _ in envs], streams, env, info)
