"""Training: Algorithm 1, and the session that logs, evaluates and saves.

`atari_dqn.train(…)`, the call of this package, is the library's function (`atari_dqn.api`).
"""

from atari_dqn import make_callable

make_callable(__name__)
