"""`python -m atari_dqn`: the program `dqn`."""

from atari_dqn.cli import main

if __name__ == "__main__":
    main()
