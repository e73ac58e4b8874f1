"""Train, resume, evaluate, record and compare DQN-family agents on Atari."""

__version__ = "0.1.0"
