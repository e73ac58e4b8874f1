"""Compare runs: groups of seeds, their statistics, and published scores of the same protocol.

`atari_dqn.compare(…)`, the call of this package, is the library's function (`atari_dqn.api`).
"""

from atari_dqn import make_callable

make_callable(__name__)
