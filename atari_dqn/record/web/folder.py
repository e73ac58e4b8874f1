"""Write the folder: a page, its script and style, and the recorded games as scripts.

A page that is opened from the file system may load scripts and no other data; therefore the data are scripts.

    index.html  player.css  player.js     the same for every agent
    recording.js                          the agent, the protocol, and a line for each game
    game_1.js  game_2.js  …               screens, q-values, saliency; loaded when the game is selected
"""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from atari_dqn import __version__
from atari_dqn.clock import FRAMES_PER_SECOND
from atari_dqn.files.atomic import plain
from atari_dqn.files.failures import writing
from atari_dqn.files.whole_directory import whole_directory
from atari_dqn.record.recording import Recording
from atari_dqn.record.web.game_data import game_data
from atari_dqn.run.archive.archive import write_parts

PAGE = "index.html"
ASSETS = (PAGE, "player.css", "player.js")
RECORDING = "recording.js"

OnProgress = Callable[[int, int], None]
"""A callback with the number of steps that are done, and the total."""


def write_web_folder(folder: Path, recording: Recording, *, on_progress: OnProgress) -> None:
    """Write a new folder that plays back the games of a recording.

    `UserError` if it exists or cannot be written, `DamagedError` if playback of a game does not give the
    recorded result.
    """
    parts = {name: _asset(name) for name in ASSETS}
    parts[RECORDING] = _script("const GAMES = {}, RECORDING", _description(recording))
    total = sum(len(game.trace.actions) + 1 for game in recording.games)
    done = 0

    def on_step() -> None:
        nonlocal done
        done += 1
        on_progress(done, total)

    for number, game in enumerate(recording.games, start=1):
        data = game_data(recording, game, on_step=on_step)
        parts[f"game_{number}.js"] = _script(f"GAMES[{number}]", data)
    with writing(folder), whole_directory(folder, holds=parts) as partial:
        write_parts(parts, partial)


def _description(recording: Recording) -> dict[str, Any]:
    source = recording.source
    return {
        "game": recording.game,
        "seed": recording.seed,
        "env_frames": source.env_frames,
        "protocol": source.protocol,
        "protocol_digest": source.protocol_digest,
        "epsilon": source.epsilon,
        "choice": recording.choice,
        "action_names": recording.action_names,
        "seconds_per_step": recording.env.frame_skip / FRAMES_PER_SECOND,
        "frames_per_second": FRAMES_PER_SECOND,
        "written_by": f"atari_dqn {__version__}",
        "games": [
            {"episode": game.episode, "return": game.result.episode_return, "end": game.result.end_reason}
            for game in recording.games
        ],
    }


def _script(target: str, data: dict[str, Any]) -> bytes:
    """Format a script that assigns data; JSON in ASCII is a JavaScript expression."""
    return f"{target} = {json.dumps(plain(data), separators=(',', ':'))};\n".encode()


def _asset(name: str) -> bytes:
    return (files("atari_dqn.record.web") / name).read_bytes()
