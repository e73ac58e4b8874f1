from typing import get_args, get_type_hints

import ale_py.roms
import pytest

from atari_dqn.envs.games import ENVS
from atari_dqn.spec import games
from atari_dqn.spec.games import GAME_CHECKS, MULTI_PLAYER_GAMES, SINGLE_PLAYER_GAMES, TOY_GAMES, game_problem
from atari_dqn.spec.schema import Env


def test_games_are_those_of_ale_py():
    assert sorted((*SINGLE_PLAYER_GAMES, *MULTI_PLAYER_GAMES)) == sorted(ale_py.roms.get_all_rom_ids())


def test_there_are_104_single_player_games():
    assert len(SINGLE_PLAYER_GAMES) == 104
    assert not set(SINGLE_PLAYER_GAMES) & set(MULTI_PLAYER_GAMES)


def test_no_toy_game_is_a_rom():
    assert not set(TOY_GAMES) & set(ale_py.roms.get_all_rom_ids())


def test_toy_game_of_another_kind_is_refused_with_its_own_kind():
    expected = 'found "recall", but env.kind is "catch"; set game = "catch", or env.kind = "recall"'
    assert game_problem("recall", kind="catch") == expected


def test_every_environment_kind_has_a_check_of_its_games():
    kinds = get_args(get_type_hints(Env)["kind"])
    assert set(GAME_CHECKS) == set(ENVS) == set(kinds)


def test_added_environment_kind_checks_its_own_games(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(games, "GAME_CHECKS", {"grid": lambda game: None if game == "maze" else "no maze"})
    assert game_problem("maze", kind="grid") is None
    assert game_problem("pong", kind="grid") == "no maze"
