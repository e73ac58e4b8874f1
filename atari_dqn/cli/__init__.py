"""The command line: `dqn`. Commands import what they need when they run, so that `--help` is quick."""

# Nothing else is imported here: until `end_on_interrupt` has run, Ctrl-C ends in a traceback.
from atari_dqn.cli.start import end_on_interrupt


def main() -> None:
    """Run the program `dqn`."""
    end_on_interrupt()
    from atari_dqn.cli.app import main as run

    run()


__all__ = ["main"]
