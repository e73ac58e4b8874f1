import numpy as np

from atari_dqn.dashboard.figures import bars, figure, intervals, line, published_line


def test_eighteen_lines_all_look_different() -> None:
    x = np.arange(3.0)
    looks = [line(x, x, name="", index=index)["line"] for index in range(18)]
    assert len({(each["color"], each["dash"]) for each in looks}) == 18


def test_published_line_looks_like_no_run() -> None:
    x = np.arange(3.0)
    runs = {line(x, x, name="", index=index)["line"]["color"] for index in range(18)}
    assert published_line(x, x, name="", index=3)["line"]["color"] not in runs


def test_values_that_hardly_differ_have_a_range_with_short_labels() -> None:
    x = np.arange(2.0)
    flat = figure([line(x, np.array([20_000.0, 20_000.5]), name="")], x="", y="")
    assert flat["layout"]["yaxis"]["range"] == [20_000 - 2_000.05, 20_000.5 + 2_000.05]
    assert flat["layout"]["xaxis"]["rangemode"] == "tozero"


def test_values_that_differ_choose_their_range_themselves() -> None:
    x = np.arange(2.0)
    assert "range" not in figure([line(x, x, name="")], x="", y="")["layout"]["yaxis"]


def test_bars_begin_at_0() -> None:
    assert "range" not in figure([bars({"a": "a"}, [15.0])], x="", y="")["layout"]["yaxis"]


def test_figure_without_values_says_so() -> None:
    empty = figure([line(np.empty(0), np.empty(0), name="")], x="", y="")
    assert [each["text"] for each in empty["layout"]["annotations"]] == ["no values yet"]


def test_legend_names_the_only_line() -> None:
    x = np.arange(2.0)
    assert figure([line(x, x, name="run")], x="", y="")["layout"]["showlegend"]


def test_interval_of_a_bar_reaches_from_its_low_to_its_high_end() -> None:
    drawn = intervals(["a"], [10.0], [7.0], [15.0])["error_y"]
    assert (drawn["arrayminus"], drawn["array"]) == ([3.0], [5.0])
