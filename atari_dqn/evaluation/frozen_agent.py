"""Load the network of a checkpoint or an archive for evaluation and recording."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from atari_dqn.agent.network import QNetwork
from atari_dqn.assembly.parts import build_network
from atari_dqn.clock import steps_to_frames
from atari_dqn.envs.games import game_info
from atari_dqn.errors import DamagedError, ExplainedDamageError, UserError
from atari_dqn.evaluation.weights import read_weights
from atari_dqn.files.atomic import is_file
from atari_dqn.machine.devices import set_kernels
from atari_dqn.run.added_parts import explained_by_packages
from atari_dqn.run.archive.archive import WEIGHTS, is_archive, read_archive, refuse_missing_archive
from atari_dqn.run.archive.opening import opened_run, results_folder
from atari_dqn.run.checkpoint.bookkeeping import check_bookkeeping
from atari_dqn.run.checkpoint.catalog import best_first, read_catalog
from atari_dqn.run.checkpoint.locate import locate
from atari_dqn.run.checkpoint.manifest import verify
from atari_dqn.run.checkpoint.names import MANIFEST, run_folder
from atari_dqn.run.checkpoint.reconcile import checkpoint_directories
from atari_dqn.run.checkpoint.state_files import AGENT, read_agent
from atari_dqn.run.checkpoint.state_tree import tree_digest
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.threads import threads_at
from atari_dqn.spec.loader import load_resolved
from atari_dqn.spec.protocol import CheckpointChoice
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo, StateDict

_TRIES = 10
"""The number of attempts to read a checkpoint that training replaces at the same time."""


@dataclass(frozen=True, kw_only=True)
class FrozenAgent:
    """The network of a checkpoint or an archive, with its spec and game."""

    run: RunDirectory
    """Its run; for an archive the folder of its scores and videos."""
    checkpoint: Path
    """The checkpoint or the archive."""
    choice: CheckpointChoice
    step: int
    spec: Spec
    info: GameInfo
    network: QNetwork

    @property
    def env_frames(self) -> int:
        """Emulator frames for which it was trained."""
        return steps_to_frames(self.step, frame_skip=self.spec.env.frame_skip)

    @property
    def source(self) -> Path:
        """The run directory or the archive that it was loaded from."""
        return self.checkpoint if is_archive(self.checkpoint) else self.run.path

    @property
    def name(self) -> str:
        """The archive's name, or those of the run and the checkpoint."""
        if is_archive(self.checkpoint):
            return self.checkpoint.resolve().name
        return f"{self.run.path.resolve().name}/checkpoints/{self.checkpoint.name}"

    @cached_property
    def weights_sha256(self) -> str:
        """The digest of the weights, by which their scores, recordings and videos are found."""
        return tree_digest(dict(self.network.state_dict()))

    def has_weights(self, weights_sha256: str | None, *, game: str, seed: int, step: int) -> bool:
        """Return whether the weights of a recording are those of this agent.

        Without a digest, as in recordings of earlier versions, game, seed and step must be the same.
        """
        if weights_sha256 is not None:
            return weights_sha256 == self.weights_sha256
        return (game, seed, step) == (self.spec.game, self.spec.seed, self.step)


def load_frozen(path: Path, device: torch.device) -> FrozenAgent:
    """Load the agent of an archive, of a checkpoint, or of the latest checkpoint of a run directory.

    If a running training replaces the checkpoint meanwhile, its replacement is loaded. The number of torch's
    threads is set to that of the run, so that rounding is the same. Raise `UserError` if `path` is none
    of these, `DamagedError` if its files are damaged or belong to another run.
    """
    if is_archive(path):
        return _finite(_load_archive(path, device))
    refuse_missing_archive(path)
    run = RunDirectory.open(run_folder(path))
    with _suggesting_whole_agent(run, device):
        return _load_of_run(path, device)


def _load_of_run(path: Path, device: torch.device) -> FrozenAgent:
    for _ in range(_TRIES):
        run, checkpoint = _located(path)
        try:
            return _finite(_load(run, checkpoint, path, device))
        except (UserError, DamagedError, OSError) as error:
            failure = error
            if _located(path)[1] == checkpoint:
                raise
    raise failure


@contextmanager
def _suggesting_whole_agent(run: RunDirectory, device: torch.device) -> Iterator[None]:
    """Add to a `DamagedError` without a remedy the newest checkpoint of the run whose agent can be loaded."""
    try:
        yield
    except ExplainedDamageError:
        raise
    except DamagedError as error:
        remedy = "restore it: no checkpoint of this run has a whole agent"
        for checkpoint in reversed(checkpoint_directories(run.checkpoints)):
            if _is_whole(run, checkpoint, device):
                remedy = f"restore it, or name the newest checkpoint with a whole agent: {checkpoint}"
                break
        raise DamagedError(f"{error}\n{remedy}") from error


def _is_whole(run: RunDirectory, checkpoint: Path, device: torch.device) -> bool:
    """Return whether the agent of a checkpoint can be loaded."""
    try:
        _finite(_load(run, checkpoint, checkpoint, device))
    except (UserError, RuntimeError):  # damage, or memory that is not there
        return False
    return True


def _located(path: Path) -> tuple[RunDirectory, Path]:
    """Return the run and the checkpoint of a path; for the link `best` the best checkpoint of the catalog.

    A kill after the catalog was written, or a partial copy of the run, leaves a link to another one.
    """
    run, checkpoint = locate(path)
    if not _is_best(path):
        return run, checkpoint
    try:
        scored = best_first(read_catalog(run.checkpoints))
    except DamagedError:  # which `dqn verify` and a resume report; the link is whole
        scored = []
    best = run.checkpoints / scored[0].path if scored else checkpoint
    return run, best if is_file(best / MANIFEST) else checkpoint


def _finite(agent: FrozenAgent) -> FrozenAgent:
    """Return an agent; raise `DamagedError` if one of its weights is not a finite number."""
    where = f"{agent.checkpoint}: {WEIGHTS}" if is_archive(agent.checkpoint) else str(agent.checkpoint)
    for name, weight in agent.network.state_dict().items():
        if not weight.isfinite().all():
            raise DamagedError(f"{where}: its weights {name} are not finite")
    return agent


def _load(run: RunDirectory, checkpoint: Path, path: Path, device: torch.device) -> FrozenAgent:
    provenance = run.read_provenance()
    spec = load_resolved(run.spec, provenance).spec
    manifest = verify(checkpoint, only=[AGENT])
    check_bookkeeping(checkpoint / MANIFEST, manifest["bookkeeping"])
    _check_game(manifest, checkpoint, spec)
    # The threads that reached this step, as in the run's own evaluation; later steps may have others.
    set_kernels(device, threads=threads_at(run, max(0, manifest["step"] - 1)), deterministic=True)
    info = game_info(spec)
    network = build_network(spec, info, device)
    weights: StateDict = {name: network.state_dict() for name in ("online", spec.learner.acting_network)}
    with explained_by_packages(spec, provenance):
        network.load_state_dict(read_agent(checkpoint, weights)[spec.learner.acting_network])
    return FrozenAgent(
        run=run,
        checkpoint=checkpoint.resolve(),
        choice=_choice(path, manifest),
        step=manifest["step"],
        spec=spec,
        info=info,
        network=network,
    )


def _load_archive(path: Path, device: torch.device) -> FrozenAgent:
    archive = read_archive(path)
    with opened_run(path) as run:
        provenance = run.read_provenance()
        spec = load_resolved(run.spec, provenance).spec
    set_kernels(device, threads=archive.agent.torch_threads, deterministic=True)
    info = game_info(spec)
    network = build_network(spec, info, device)
    with explained_by_packages(spec, provenance):
        network.load_state_dict(read_weights(archive, dict(network.state_dict())))
    return FrozenAgent(
        run=RunDirectory(results_folder(path)),
        checkpoint=path,
        choice=archive.agent.checkpoint,
        step=archive.agent.step,
        spec=spec,
        info=info,
        network=network,
    )


def _check_game(manifest: dict[str, Any], checkpoint: Path, spec: Spec) -> None:
    # Checkpoints of earlier versions do not name their game; then only the shapes of the weights are checked.
    game = manifest["bookkeeping"].get("game", spec.game)
    if game != spec.game:
        raise ExplainedDamageError(
            f"{checkpoint}: is a checkpoint of {game}, but the spec of its run has {spec.game}; "
            f"move it back to the run that it belongs to"
        )


def _choice(path: Path, manifest: dict[str, Any]) -> CheckpointChoice:
    """Return `best` for a checkpoint of that name, `last` for a finished run, otherwise `current`."""
    if _is_best(path):
        return "best"
    return "last" if manifest["bookkeeping"]["finished"] else "current"


def _is_best(path: Path) -> bool:
    """Return whether a path is that of the link `best`; a run directory may have that name too."""
    return path.name == "best" and is_file(path / MANIFEST)
