"""The module that the comparisons of training speed in `benchmarks/` share."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from training_speed import Contender, Match, take_turns, united, words


def contender(folder, name, speeds):
    """Return a program that prints one of `speeds` each time it is run, in order."""
    script, count = folder / f"{name}.py", folder / f"{name}.count"
    script.write_text(
        "import json, pathlib\n"
        f"count = pathlib.Path({str(count)!r})\n"
        "done = int(count.read_text()) if count.exists() else 0\n"
        "count.write_text(str(done + 1))\n"
        "print('chatter')\n"
        f"print(json.dumps({{'frames_per_second': {speeds!r}[done]}}))\n"
    )
    return Contender(python=Path(sys.executable), script=str(script))


def test_a_ratio_is_the_median_of_those_within_a_round(tmp_path):
    # 2, 1 and 4 within the rounds; the medians' own ratio is 30 / 10
    match = Match(
        contenders={
            "a": contender(tmp_path, "a", [20.0, 30.0, 40.0]),
            "b": contender(tmp_path, "b", [10.0, 30.0, 10.0]),
        },
        ratios=[("a", "b")],
    )
    found = take_turns(match, rounds=3, seconds=1.0, threads=1)
    assert found["median_ratio"] == {"a / b": 2.0}


def test_an_option_with_several_values_is_given_several_times():
    assert words({"envs": 8, "set": ("x=1", "y=2")}) == ["--envs", "8", "--set", "x=1", "--set", "y=2"]


def test_a_contender_of_two_comparisons_runs_once():
    shared, own = Contender(python=Path("p"), script="ours"), Contender(python=Path("p"), script="theirs")
    first = Match(contenders={"ours": shared}, ratios=[])
    second = Match(contenders={"ours": shared, "theirs": own}, ratios=[("ours", "theirs")])
    assert list(united([first, second]).contenders) == ["ours", "theirs"]


def test_a_system_that_fails_ends_the_comparison(tmp_path):
    script = tmp_path / "broken.py"
    script.write_text("raise SystemExit(3)\n")
    match = Match(contenders={"a": Contender(python=Path(sys.executable), script=str(script))}, ratios=[])
    with pytest.raises(Exception, match="exit status 3"):
        take_turns(match, rounds=1, seconds=1.0, threads=1)
