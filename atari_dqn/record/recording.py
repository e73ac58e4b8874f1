"""Read and write recordings: the decisions of some games, and everything else that reproduces them.

A recording is one JSON file next to its video. Rendering the video again needs neither the network nor the
run.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import UInt8

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.evaluation.traces import BestReturns, Trace
from atari_dqn.files.atomic import is_file, plain, read_regular
from atari_dqn.files.documents import parse_json
from atari_dqn.files.failures import reading
from atari_dqn.files.new_files import write_new, write_numbered
from atari_dqn.record.packing import digits, pack, undigits, unpack
from atari_dqn.run.scores import EvaluationEpisode
from atari_dqn.spec.history import ADDED, current_name
from atari_dqn.spec.schema import Env

SCHEMA_VERSION = 1
_SEAL = "sha256"
_MOST_BYTES = 2**30
"""The largest size of a recording; an hour of play takes about 10 MB."""


@dataclass(frozen=True, kw_only=True)
class VideoOptions:
    """Options of a video."""

    scale: int | None = None
    """Video pixels per screen pixel; None for a video about 630 pixels high (840 without the panel)."""
    overlay: bool = True
    """Whether to draw the panel next to the screen."""


@dataclass(frozen=True, kw_only=True)
class Source:
    """The checkpoint and the protocol of a recording."""

    checkpoint: str
    step: int
    env_frames: int
    protocol: str
    """The protocol as text."""
    protocol_digest: str
    epsilon: float
    weights_sha256: str | None = None
    """Digest of the weights; None in recordings of earlier versions."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordedGame:
    """One game of an evaluation. The saliency of each of T steps has G × G cells."""

    episode: int
    """The episode number from 0, which with the seed determines the random streams."""
    result: EvaluationEpisode
    trace: Trace
    saliency: UInt8[np.ndarray, "T G G"] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Recording:
    """Recorded games of one checkpoint."""

    game: str
    seed: int
    stream: str
    """The name of the random streams."""
    env: Env
    rom_md5: str
    action_names: tuple[str, ...]
    source: Source
    choice: str
    """How the games were selected, as text: `the best of 10`."""
    options: VideoOptions
    games: tuple[RecordedGame, ...]


def save_recording(recording: Recording, path: Path) -> None:
    """Write a recording to a new file; raise `UserError` if it exists or cannot be written."""
    if not write_new(path, recording_bytes(recording)):
        raise UserError(f"{path} exists and is never overwritten; name another file with -o")


def save_numbered(recording: Recording, path: Path) -> Path:
    """Write a recording to the first of `path`, path_2, path_3, … that is free, as is that of its video.

    The file reserves the name of the video. Return its path; raise `UserError` if it cannot be written.
    """
    return write_numbered(path, recording_bytes(recording), companion=".mp4")


def recording_bytes(recording: Recording) -> bytes:
    """Encode a recording as JSON; equal recordings give equal bytes."""
    contents = _contents(recording)
    return (json.dumps({**contents, _SEAL: _digest(contents)}, indent=1, ensure_ascii=False) + "\n").encode()


def load_recording(path: Path) -> Recording:
    """Read a recording; raise `UserError` if the file is not a recording, `DamagedError` if it is damaged."""
    if not is_file(path):
        raise UserError(f"{path}: not found; expected the .json file next to a video")
    with reading(path):
        data = read_regular(path, most_bytes=_MOST_BYTES)
    try:
        table = parse_json(data)
    except ValueError as error:
        raise UserError(f"{path} is not a recording: it is not JSON ({error})") from error
    if not isinstance(table, dict) or _SEAL not in table or "games" not in table:
        raise UserError(f"{path} is not a recording: expected the .json file next to a video")
    if table.get("schema_version") != SCHEMA_VERSION:
        raise DamagedError(
            f"{path}: schema version {table.get('schema_version')}; this program reads {SCHEMA_VERSION}"
        )
    if _digest({key: value for key, value in table.items() if key != _SEAL}) != table[_SEAL]:
        raise DamagedError(f"{path}: is not what was written; the file is damaged or was edited")
    try:
        return _recording(table)
    except (LookupError, AttributeError, TypeError, ValueError, zlib.error) as error:
        raise DamagedError(f"{path}: is not a valid recording of this version: {error!r}") from error


def recording_digest(recording: Recording) -> str:
    """Compute the SHA-256 of a recording, which its file contains."""
    return _digest(_contents(recording))


def _digest(contents: Mapping[str, Any]) -> str:
    text = json.dumps(contents, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _contents(recording: Recording) -> dict[str, Any]:
    contents: dict[str, Any] = plain(
        {
            "schema_version": SCHEMA_VERSION,
            "game": recording.game,
            "seed": recording.seed,
            "stream": recording.stream,
            "env": asdict(recording.env),
            "rom_md5": recording.rom_md5,
            "action_names": recording.action_names,
            "source": _source_table(recording.source),
            "choice": recording.choice,
            "look": asdict(recording.options),
            "games": [_game_table(game) for game in recording.games],
        }
    )
    return contents


def _source_table(source: Source) -> dict[str, Any]:
    """Convert a source to plain data; without a digest of the weights it is that of earlier versions."""
    return {name: value for name, value in asdict(source).items() if value is not None}


def _game_table(game: RecordedGame) -> dict[str, Any]:
    best = game.trace.best_returns
    table = {
        "episode": game.episode,
        **asdict(game.result),
        "actions": digits(game.trace.actions),
        "explored": digits(game.trace.explored.astype(np.uint8)),
        "values": pack(game.trace.values),
        "saliency": None if game.saliency is None else pack(game.saliency),
    }
    if best is not None:
        table["best_returns"] = {"points": pack(best.points), "mass": pack(best.mass), "atoms": best.atoms}
    return table


def _recording(table: Mapping[str, Any]) -> Recording:
    return Recording(
        game=table["game"],
        seed=table["seed"],
        stream=table["stream"],
        env=_env(table["env"]),
        rom_md5=table["rom_md5"],
        action_names=tuple(table["action_names"]),
        source=Source(**table["source"]),
        choice=table["choice"],
        options=VideoOptions(**table["look"]),
        games=tuple(_game(game) for game in table["games"]),
    )


def _env(table: Mapping[str, Any]) -> Env:
    """Read the environment; recordings of earlier versions lack keys, or have them under former names."""
    later = {key.removeprefix("env."): value for key, value in ADDED.items() if key.startswith("env.")}
    recorded = {current_name(f"env.{key}").removeprefix("env."): value for key, value in table.items()}
    complete: dict[str, Any] = {**later, **recorded}
    return Env(**complete)


def _game(table: Mapping[str, Any]) -> RecordedGame:
    return RecordedGame(
        episode=table["episode"],
        result=EvaluationEpisode(
            episode_return=table["episode_return"],
            length_frames=table["length_frames"],
            end_reason=table["end_reason"],
        ),
        trace=Trace(
            actions=undigits(table["actions"]),
            explored=undigits(table["explored"]).astype(np.bool_),
            values=unpack(table["values"]),
            best_returns=_best_returns(table.get("best_returns")),
        ),
        saliency=None if table["saliency"] is None else unpack(table["saliency"]),
    )


def _best_returns(table: Mapping[str, Any] | None) -> BestReturns | None:
    """Read the value distributions of a game; recordings of earlier versions have none."""
    if table is None:
        return None
    return BestReturns(points=unpack(table["points"]), mass=unpack(table["mass"]), atoms=table["atoms"])
