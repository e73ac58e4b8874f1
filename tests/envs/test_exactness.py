import pytest

from atari_dqn.envs import exactness
from atari_dqn.envs.exactness import why_inexact_game
from atari_dqn.spec.games import SINGLE_PLAYER_GAMES


def test_listed_games_are_games() -> None:
    assert set(exactness.exactness().inexact_games) < set(SINGLE_PLAYER_GAMES)


def test_game_that_is_not_restored_exactly_has_a_reason() -> None:
    reason = why_inexact_game("yars_revenge")
    assert reason is not None
    assert "ale-py 0.12.1 does not restore yars_revenge exactly" in reason


@pytest.mark.parametrize("game", ["pong", "breakout", "qbert", "seaquest", "space_invaders", "catch"])
def test_game_that_is_restored_exactly_has_no_reason(game: str) -> None:
    assert why_inexact_game(game) is None


def test_other_version_of_ale_py_is_not_known_to_be_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exactness, "version", lambda _: "9.9.9")
    assert why_inexact_game("pong") == "restoring games was tested with ale-py 0.12.1, not with 9.9.9"
