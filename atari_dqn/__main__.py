"""Run the command `dqn` as `python -m atari_dqn`."""

from atari_dqn.cli import main

if __name__ == "__main__":
    main()
