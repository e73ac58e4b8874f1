import numpy as np

from atari_dqn.dashboard.figures import line


def test_eighteen_lines_all_look_different() -> None:
    x = np.arange(3.0)
    looks = [line(x, x, name="", place=place)["line"] for place in range(18)]
    assert len({(each["color"], each["dash"]) for each in looks}) == 18
