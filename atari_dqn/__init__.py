"""Train, resume and evaluate DQN-family agents on Atari."""

from atari_dqn.openmp import wait_passively

__version__ = "0.1.0"

wait_passively()  # here, because every command, worker process and library user imports this before torch
