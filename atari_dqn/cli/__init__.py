"""The command line: `dqn`. Commands import what they need when they run, so that `--help` is quick."""

from __future__ import annotations

from atari_dqn.cli.start import end_on_interrupt


def main() -> None:
    """Run the program `dqn`."""
    end_on_interrupt()  # before the imports, which take a person's time
    from atari_dqn.cli.app import main as run

    run()


__all__ = ["main"]
