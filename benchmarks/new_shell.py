"""The environment of a program that is measured as a user starts it."""

import os

from atari_dqn import WAIT_VARIABLES


def environment_of_a_new_shell() -> dict[str, str]:
    """Copy this process's environment without the variables by which the package has set how threads wait.

    The package sets them when it is imported, and children inherit them: another version or another system
    would keep them in place of its own.
    """
    return {name: value for name, value in os.environ.items() if name not in WAIT_VARIABLES}
