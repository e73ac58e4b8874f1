"""Train, resume and evaluate DQN-family agents on Atari."""

__version__ = "0.1.0"
