"""Check that a file system has hard links, by which leases are created."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from atari_dqn.errors import UserError
from atari_dqn.files.failures import writing


def check_links(folder: Path) -> None:
    """Check that leases can be created in a folder; `UserError` if its file system has no hard links."""
    first, second = (folder / f".{secrets.token_hex(4)}.partial" for _ in range(2))
    with writing(folder):
        first.touch()
        try:
            os.link(first, second)
        except OSError as error:
            raise UserError(
                f"{folder}: its file system has no hard links ({(error.strerror or str(error)).lower()}), "
                "by which runs are shared out safely; choose another place with --folder"
            ) from error
        finally:
            first.unlink(missing_ok=True)
            second.unlink(missing_ok=True)
