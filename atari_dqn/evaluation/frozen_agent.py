"""An agent as a checkpoint holds it: what evaluates or records it needs no more than this."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from atari_dqn.agent.network import QNetwork
from atari_dqn.assembly.parts import build_network
from atari_dqn.clock import steps_to_frames
from atari_dqn.envs.games import make_envs
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.evaluation.evaluate import STREAM
from atari_dqn.machine.devices import set_kernels
from atari_dqn.run.checkpoint.bookkeeping import check_bookkeeping
from atari_dqn.run.checkpoint.files import read_agent
from atari_dqn.run.checkpoint.locate import locate
from atari_dqn.run.checkpoint.store import MANIFEST, verify
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.threads import threads_at
from atari_dqn.spec.loader import load_resolved
from atari_dqn.spec.protocol import CheckpointChoice
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo

_TRIES = 10
"""Checkpoints that may be replaced, one after another, while they are read."""


@dataclass(frozen=True, kw_only=True)
class FrozenAgent:
    """The network of a checkpoint, and where it comes from."""

    run: RunDirectory
    checkpoint: Path
    choice: CheckpointChoice
    step: int
    spec: Spec
    info: GameInfo
    network: QNetwork

    @property
    def env_frames(self) -> int:
        """Emulator frames it was trained for."""
        return steps_to_frames(self.step, frame_skip=self.spec.env.frame_skip)


def load_frozen(path: Path, device: torch.device) -> FrozenAgent:
    """Return the agent of the checkpoint that `path` names; a run directory stands for its latest.

    A training beside may replace the checkpoint while it is read; then the one that has taken its place is
    read. Torch's threads become those of the run, so that rounding is the same. `UserError` if `path` is
    neither, `DamagedError` if its files are not what was written, or are of another run.
    """
    for _ in range(_TRIES):
        run, checkpoint = locate(path)
        try:
            return _load(run, checkpoint, path, device)
        except (UserError, DamagedError, OSError) as error:
            failure = error
            if locate(path)[1] == checkpoint:
                raise
    raise failure


def _load(run: RunDirectory, checkpoint: Path, path: Path, device: torch.device) -> FrozenAgent:
    spec = load_resolved(run.spec).spec
    manifest = verify(checkpoint)
    check_bookkeeping(checkpoint / MANIFEST, manifest["bookkeeping"])
    _refuse_other_game(manifest, checkpoint, spec)
    # those that came to this step, which an evaluation of the run's own had; it may have gone on with others
    torch.set_num_threads(threads_at(run, max(0, manifest["step"] - 1)))
    set_kernels(device, deterministic=True)
    info = game_info(spec)
    network = build_network(spec, info, device)
    network.load_state_dict(read_agent(checkpoint, {"online": network.state_dict()})["online"])
    return FrozenAgent(
        run=run,
        checkpoint=checkpoint,
        choice=_choice(path, manifest),
        step=manifest["step"],
        spec=spec,
        info=info,
        network=network,
    )


def game_info(spec: Spec) -> GameInfo:
    """Return what is known of a spec's game."""
    envs = make_envs(game=spec.game, env=spec.env, num_envs=1, seed=spec.seed, stream=STREAM)
    with closing(envs):
        return envs.info


def _refuse_other_game(manifest: dict[str, Any], checkpoint: Path, spec: Spec) -> None:
    # Checkpoints did not always say; of an older one the weights' shapes must tell.
    game = manifest["bookkeeping"].get("game", spec.game)
    if game != spec.game:
        raise DamagedError(
            f"{checkpoint}: is a checkpoint of {game}, its run's spec says {spec.game}; "
            f"put it back under the run it came from"
        )


def _choice(path: Path, manifest: dict[str, Any]) -> CheckpointChoice:
    """Return which of a run's weights these are: the best if named so, the last, or those of their moment."""
    if path.name == "best":
        return "best"
    return "last" if manifest["bookkeeping"]["finished"] else "current"
