"""Decide which Ray clusters may be joined: one on this machine, or one that requires a token."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from atari_dqn.errors import UserError
from atari_dqn.machine.loopback import is_loopback

MODE, TOKEN, TOKEN_PATH = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"
"""Environment variables with which Ray 2.52 and later require and find a token."""
_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:.%]+\]|[A-Za-z0-9_.-]+):(?P<port>\d{1,5})")
_MOST_PORT = 2**16 - 1
_HOW = (
    "any program that reaches a Ray cluster without a token can run code on it: make one with "
    "`ray get-auth-token --generate`, copy ~/.ray/auth_token to every host, and set RAY_AUTH_MODE=token on "
    "each before `ray start` and here before this command"
)


def check_ray() -> None:
    """Raise a `UserError` if Ray is not installed."""
    if find_spec("ray") is None:
        raise UserError("--on ray needs ray; install it with `pip install 'atari-dqn[ray]'`")


def parse_address(text: str) -> tuple[str, int]:
    """Return host and port of an address; `UserError` for another form."""
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match["port"]) <= _MOST_PORT:
        raise UserError(f"--address: found {text!r}, expected HOST:PORT, as `ray start --head` prints it")
    return match["host"].strip("[]"), int(match["port"])


def check_token(host: str, environment: Mapping[str, str]) -> None:
    """Raise a `UserError` for a host other than this machine if no token is set up."""
    if not is_loopback(host) and not _has_token(environment):
        raise UserError(f"{host} is reached over the network, and no token is set up; {_HOW}")


def check_requires_token(host: str, mode: str) -> None:
    """Raise a `UserError` for a node that listens to the network and does not require a token."""
    if not is_loopback(host) and mode.lower() != "token":
        raise UserError(f"the Ray node {host} requires no token; {_HOW}")


def _has_token(environment: Mapping[str, str]) -> bool:
    """Return whether Ray requires a token and finds one where it looks for it."""
    if environment.get(MODE, "").lower() != "token":
        return False
    if environment.get(TOKEN):
        return True
    path = Path(environment.get(TOKEN_PATH) or "~/.ray/auth_token")
    try:
        return bool(path.expanduser().read_text().strip())
    except (OSError, ValueError, RuntimeError):  # the last where the user has no home directory
        return False
