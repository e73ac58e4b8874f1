"""The keys in which runs differ, and the runs that are compared first."""

from pathlib import Path

from atari_dqn.dashboard.library import RunEntry

# The page is imported by its tests: NiceGUI takes each worker a second.


def entry(name: str, **values: int | str) -> RunEntry:
    return RunEntry(name=name, path=Path(name), values={"game": "pong", **values})


def test_keys_that_differ_have_the_value_of_every_run() -> None:
    from atari_dqn.dashboard.pages.diff import ABSENT, differing

    runs = [entry("a", seed=1, batch=8), entry("b", seed=1, batch=16), entry("c", seed=1)]
    assert differing(runs) == {"batch": ["8", "16", ABSENT]}


def test_latest_run_is_first_compared_with_one_of_another_method_on_its_game() -> None:
    from atari_dqn.dashboard.pages.diff import _unlike

    seed = entry("another seed", seed=2, batch=8)
    game = entry("another game", game="catch", seed=1, batch=16)
    runs = [entry("latest", seed=1, batch=8), seed, game, entry("another method", seed=1, batch=16)]
    assert [run.name for run in _unlike(runs)] == ["latest", "another method"]
