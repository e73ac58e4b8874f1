"""The command line: `dqn`. Commands import what they need when they run, so that `--help` is quick."""

from atari_dqn.cli.app import main

__all__ = ["main"]
