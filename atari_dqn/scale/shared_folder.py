"""Check that two hosts share the folder of a sweep, and do not each have one of the same name.

The first host calls `write_probe` and sends the probe to the other, which calls `answer_probe`. Then the
first calls `check_answer`, and `remove_probe` in any case.
"""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from atari_dqn import __version__
from atari_dqn.errors import UserError
from atari_dqn.files.atomic import read_regular, write_json_atomically
from atari_dqn.files.failures import writing
from atari_dqn.run.sweep.folder import SweepFolder

_PATIENCE_SECONDS = 5.0
_PAUSE_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A file that one host has written and others must find: plain values that may be sent anywhere."""

    name: str
    content: str
    version: str
    """The version of this program on the host that wrote it."""


def write_probe(folder: SweepFolder) -> Probe:
    """Write a probe into a sweep's folder; remove it with `remove_probe`."""
    probe = Probe(
        name=f".probe_{secrets.token_hex(8)}.json", content=secrets.token_hex(16), version=__version__
    )
    write_json_atomically(folder.own / probe.name, {"content": probe.content})
    return probe


def answer_probe(folder: SweepFolder, probe: Probe, host: str) -> None:
    """Check on another host that its folder holds the probe, and write an answer for the first host.

    `UserError` names the host if it has another folder or another version of this program.
    """
    if probe.version != __version__:
        raise UserError(
            f"{host}: has version {__version__} of atari_dqn, expected {probe.version}; install the same"
        )
    if _content(folder.own / probe.name) != probe.content:
        raise UserError(
            f"{host}: {folder.path} is not the folder of the first host: it lacks a file written there; "
            "a sweep on several hosts needs a folder that they share"
        )
    write_json_atomically(_answer(folder, probe, host), {"content": probe.content})


def check_answer(folder: SweepFolder, probe: Probe, host: str) -> None:
    """Check on the first host that the answer of another has arrived; `UserError` if it has not."""
    if _content(_answer(folder, probe, host)) != probe.content:
        raise UserError(
            f"{host}: what it writes into {folder.path} does not arrive here; "
            "a sweep on several hosts needs a folder that they share"
        )


def remove_probe(folder: SweepFolder, probe: Probe) -> None:
    """Remove a probe and its answers."""
    stem = Path(probe.name).stem
    with writing(folder.own):
        for path in folder.own.glob(f"{stem}*"):
            path.unlink(missing_ok=True)


def _answer(folder: SweepFolder, probe: Probe, host: str) -> Path:
    safe = "".join(letter if letter.isalnum() else "-" for letter in host)[:80]
    return folder.own / f"{Path(probe.name).stem}_{safe}.json"


def _content(path: Path) -> str | None:
    """Read a probe; wait some seconds for it, as network file systems show new files late."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return str(json.loads(read_regular(path))["content"])
        except (OSError, ValueError, KeyError, TypeError):
            if time.monotonic() > until:
                return None
            time.sleep(_PAUSE_SECONDS)
