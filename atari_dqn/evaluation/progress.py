"""Keep the finished games of a running evaluation on disk, so that it can be resumed after an interruption.

The file holds JSON lines: the first describes the evaluation, and each other one is a finished game with a
digest over the game and the first line's digest. The file is cut off at the first incomplete or damaged line,
and the games from there on are played again (docs/decisions/0038).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import msgspec
import torch
from torch import nn

from atari_dqn.assembly.acceleration import kernels_here
from atari_dqn.errors import UserError
from atari_dqn.files.atomic import AppendFile, is_file
from atari_dqn.run.checkpoint.state_tree import tree_digest
from atari_dqn.run.leases.guard import check_lease
from atari_dqn.run.provenance import PACKAGES, versions
from atari_dqn.run.scores import EvaluationEpisode
from atari_dqn.spec.added_packages import packages_of
from atari_dqn.spec.protocol import Protocol
from atari_dqn.spec.schema import Spec

SCHEMA_VERSION = 1
_SYNC_SECONDS = 5.0
"""Minimum time between flushes to disk: a power failure loses the games of this time, a kill none."""

_MOST_BYTES = 2**24
"""Enough for more than 50,000 games. A longer file is truncated."""


@dataclass(frozen=True, kw_only=True)
class EvaluationKey:
    """Everything that determines the games of an evaluation."""

    weights_sha256: str
    """Digest of the network's weights."""
    step: int
    """Agent steps for which the weights were trained."""
    protocol: str
    """Digest of the protocol."""
    seed: int
    """Seed of the random streams of the games."""
    device: str
    """Type of the device that the network runs on; rounding differs between types."""
    torch_threads: int
    """Number of torch's threads, which rounding depends on too."""
    kernels: tuple[str, ...]
    """Our compiled kernels in use, which round differently from PyTorch's."""
    versions: dict[str, str | None]
    """Versions of the packages that can change results, by name."""

    @classmethod
    def of(cls, network: nn.Module, spec: Spec, *, step: int, protocol: Protocol) -> EvaluationKey:
        """Make the key of an evaluation of a network as it is, with torch's threads of this process."""
        device = next(network.parameters()).device.type
        found = versions()
        return cls(
            weights_sha256=tree_digest(dict(network.state_dict())),
            step=step,
            protocol=protocol.digest(),
            seed=spec.seed,
            device=device,
            torch_threads=torch.get_num_threads(),
            kernels=kernels_here() if device == "cpu" else (),
            versions={**{name: found[name] for name in ("atari_dqn", *PACKAGES)}, **packages_of(spec)},
        )

    def digest(self) -> str:
        """Return the SHA-256 of the key and of this format's version."""
        return _sha256(_json({"schema_version": SCHEMA_VERSION, **asdict(self)}))


class _Game(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    episode: int
    episode_return: float
    length_frames: int
    end_reason: Literal["game_over", "frame_cap"]


class _Line(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    game: _Game
    sha256: str


class EvaluationProgress:
    """Keeps the finished games of one evaluation in a file; removes those of any other evaluation from it.

    Raise `UserError` if the file cannot be written or another process plays this evaluation. Use with
    `closing`.
    """

    def __init__(self, path: Path, key: EvaluationKey) -> None:
        self.path, self._digest = path, key.digest()
        if path.exists() and not is_file(path):
            raise UserError(f"{path}: is not a regular file; remove or rename it")
        self._file = AppendFile(path)
        if not self._file.lock():
            self._file.close()
            raise UserError(f"{path}: another process plays this evaluation; wait for it, or end it")
        self.finished: dict[int, EvaluationEpisode] = {}
        """Finished games by episode number."""
        self._first = _json({"evaluates": asdict(key), "sha256": self._digest}) + b"\n"
        self._synced = monotonic()
        self._load()

    def add(self, episode: int, game: EvaluationEpisode) -> None:
        """Keep a game that has finished."""
        check_lease()
        self.finished[episode] = game
        if self._file.length() == 0:
            self._file.append(self._first)
        contents = _Game(episode=episode, **asdict(game))
        line = _Line(game=contents, sha256=self._seal(contents))
        self._file.append(msgspec.json.encode(line) + b"\n")
        if monotonic() - self._synced > _SYNC_SECONDS:
            self._file.sync()
            self._synced = monotonic()

    def forget(self) -> None:
        """Remove the file; call it once the score is saved elsewhere."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file, and remove it if it holds no game."""
        if not self.finished:
            self.forget()  # while it is locked: another command may begin to use the file afterwards
        self._file.close()

    def _load(self) -> None:
        data = self._file.read(0, _MOST_BYTES)
        length = 0
        if data.startswith(self._first):
            length = len(self._first)
            for game, line in self._games(data[length:]):
                self.finished[game.episode] = EvaluationEpisode(
                    episode_return=game.episode_return,
                    length_frames=game.length_frames,
                    end_reason=game.end_reason,
                )
                length += len(line)
        if length < self._file.length():
            self._file.truncate(length)

    def _games(self, data: bytes) -> Iterator[tuple[_Game, bytes]]:
        """Yield each game with its line, up to the first line that is incomplete or whose digest is wrong."""
        for text in data.splitlines(keepends=True):
            try:
                line = msgspec.json.decode(text, type=_Line)
            except (ValueError, RecursionError):
                return
            if line.sha256 != self._seal(line.game) or not text.endswith(b"\n"):
                return
            yield line.game, text

    def _seal(self, game: _Game) -> str:
        return _sha256(self._digest.encode() + msgspec.json.encode(game))


def _json(values: dict[str, Any]) -> bytes:
    return msgspec.json.encode(values, order="sorted")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
