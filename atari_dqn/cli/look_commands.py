"""Commands that look, and change nothing: `doctor`."""

from __future__ import annotations


def doctor() -> None:
    """Say what this machine has, and which settings suit it."""
    from atari_dqn.cli.doctor import doctor as run

    run()
