"""The gain of a step of an ablation, and steps that have none."""

from pathlib import Path

from atari_dqn.compare.comparison import compare
from atari_dqn.dashboard.pages.ablations import ladder_figure, ladder_rows, rungs
from runs import make_run

INCREMENT, OVER = 4, 5
"""Columns of the table."""


def increments(folder: Path, *overrides: str) -> list[str]:
    """Return the increments of a ladder of two groups, the second with Double DQN and other keys."""
    paths = [
        make_run(folder / f"{place}_{seed}", [score + seed], overrides=[f"seed={seed}", *keys])
        for place, (score, keys) in enumerate([(0.0, ()), (10.0, ("toggles.double=true", *overrides))])
        for seed in (1, 2)
    ]
    return [row[INCREMENT] for row in ladder_rows(rungs(compare(paths, human_table="atari57").results))]


def test_step_of_one_protocol_has_its_gain(tmp_path: Path) -> None:
    assert increments(tmp_path) == ["–", "10.0 [7.0, 13.0]"]


def test_step_to_another_protocol_has_no_gain(tmp_path: Path) -> None:
    assert increments(tmp_path, "evaluation.epsilon=0.01") == ["–", "not compared: epsilon 0.01, there 0.05"]


def test_bar_of_one_seed_has_no_interval(tmp_path: Path) -> None:
    seeds = [(0, 1), (0, 2), (1, 1)]
    paths = [
        make_run(
            tmp_path / f"{double}_{seed}",
            [float(seed)],
            overrides=[f"seed={seed}", f"toggles.double={'true' if double else 'false'}"],
        )
        for double, seed in seeds
    ]
    bars, intervals = ladder_figure(rungs(compare(paths, human_table="atari57").results))["data"]
    assert (len(bars["x"]), intervals["x"]) == (2, bars["x"][:1])


def test_step_to_other_frames_has_no_gain(tmp_path: Path) -> None:
    paths = [
        make_run(tmp_path / f"{len(returns)}_{seed}", returns, overrides=[f"seed={seed}", *keys])
        for returns, keys in (([1.0], ()), ([1.0, 9.0], ("toggles.double=true",)))
        for seed in (1, 2)
    ]
    rows = ladder_rows(rungs(compare(paths, human_table="atari57").results))
    assert rows[1][INCREMENT] == "not compared: after 1,000,000 frames, there 500,000"


def test_step_that_adds_to_no_other_has_no_gain(tmp_path: Path) -> None:
    paths = [
        make_run(tmp_path / f"{name}_{seed}", [score + seed], overrides=[f"seed={seed}", *keys])
        for name, score, keys in (
            ("plain", 0.0, ()),
            ("double", 10.0, ("toggles.double=true",)),
            ("dueling", 4.0, ("toggles.dueling=true",)),
            ("both", 20.0, ("toggles.double=true", "toggles.dueling=true")),
        )
        for seed in (1, 2)
    ]
    found = {row[1]: row[INCREMENT].partition(" ")[0] for row in rows_of(paths)}
    assert found == {"none": "–", "double": "10.0", "dueling": "4.0", "double, dueling": "16.0"}


def test_step_of_cut_games_has_no_gain(tmp_path: Path) -> None:
    cap = "evaluation.max_episode_frames=1_000"
    paths = [
        make_run(tmp_path / f"{place}_{seed}", [1.0], overrides=[f"seed={seed}", cap, *keys], frame_caps=9)
        for place, keys in enumerate([(), ("toggles.double=true",)])
        for seed in (1, 2)
    ]
    rows = ladder_rows(rungs(compare(paths, human_table="atari57").results))
    assert rows[1][INCREMENT] == "not compared: the frame cap cut games"


def rows_of(paths: list[Path]) -> list[list[str]]:
    return ladder_rows(rungs(compare(paths, human_table="atari57").results))


def steps(folder: Path, *steps: list[str]) -> list[list[str]]:
    """Return the rows of a ladder of steps of two seeds that differ from Track A in these keys."""
    paths = [
        make_run(folder / f"{place}_{seed}", [10.0 * place + seed], overrides=[f"seed={seed}", *keys])
        for place, keys in enumerate(steps)
        for seed in (1, 2)
    ]
    return rows_of(paths)


def test_step_is_over_one_that_differs_in_toggles_alone(tmp_path: Path) -> None:
    batch = "learner.batch_size=16"
    rows = steps(tmp_path, [], [batch], ["toggles.double=true"])
    assert rows[-1][OVER].startswith("pong_trackA double=false, batch_size=32")
    assert rows[-1][INCREMENT].partition(" ")[0] == "20.0"


def test_step_that_differs_in_another_key_too_says_in_which(tmp_path: Path) -> None:
    rows = steps(tmp_path, [], ["toggles.double=true", "learner.batch_size=16"])
    assert rows[-1][OVER].endswith("; also differs in learner.batch_size")


def test_step_is_over_one_of_its_protocol(tmp_path: Path) -> None:
    double, dueling, other = "toggles.double=true", "toggles.dueling=true", "evaluation.epsilon=0.01"
    others = ["learner.batch_size=16", "learner.loss=mse"]
    rows = steps(tmp_path, others, [double, other], [double, dueling])
    assert (rows[-1][1], rows[-1][INCREMENT].partition(" ")[0]) == ("double, dueling", "20.0")


def test_step_is_over_the_one_with_the_fewest_toggles_less(tmp_path: Path) -> None:
    double, dueling = "toggles.double=true", "toggles.dueling=true"
    rows = steps(tmp_path, [double], [], [double, dueling])
    assert (rows[-1][1], rows[-1][INCREMENT].partition(" ")[0]) == ("double, dueling", "20.0")


def test_keys_that_come_with_a_toggle_are_no_other_difference(tmp_path: Path) -> None:
    rows = steps(tmp_path, [], ["toggles.prioritized=true"])
    assert "also differs" not in rows[-1][OVER]


def test_long_labels_are_short_below_their_bars_and_whole_on_them(tmp_path: Path) -> None:
    changes = ([], ["toggles.double=true", "learner.batch_size=16", "learner.loss=mse"])
    paths = [make_run(tmp_path / str(place), [1.0], overrides=keys) for place, keys in enumerate(changes)]
    bars, _ = ladder_figure(rungs(compare(paths, human_table="atari57").results))["data"]
    assert bars["hovertext"] == [
        "pong_trackA double=false, batch_size=32, loss=huber",
        "pong_trackA double=true, batch_size=16, loss=mse",
    ]
    assert max(map(len, bars["x"])) <= 24
    assert len({*bars["x"]}) == 2
