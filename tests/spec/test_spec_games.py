from typing import get_args, get_type_hints

import ale_py.roms
import pytest

from atari_dqn.envs.games import ENVS
from atari_dqn.spec import games
from atari_dqn.spec.games import GAME_CHECKS, MULTI_PLAYER_GAMES, SINGLE_PLAYER_GAMES, TOY_GAME, game_problem
from atari_dqn.spec.schema import Env


def test_the_games_are_those_of_the_emulators_package():
    assert sorted((*SINGLE_PLAYER_GAMES, *MULTI_PLAYER_GAMES)) == sorted(ale_py.roms.get_all_rom_ids())


def test_there_are_104_games_for_one_player():
    assert len(SINGLE_PLAYER_GAMES) == 104
    assert not set(SINGLE_PLAYER_GAMES) & set(MULTI_PLAYER_GAMES)


def test_the_toy_game_is_no_rom():
    assert TOY_GAME not in ale_py.roms.get_all_rom_ids()


def test_every_environment_says_which_games_it_plays():
    kinds = get_args(get_type_hints(Env)["kind"])
    assert set(GAME_CHECKS) == set(ENVS) == set(kinds)


def test_a_new_environment_has_games_of_its_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(games, "GAME_CHECKS", {"grid": lambda game: None if game == "maze" else "no maze"})
    assert game_problem("maze", kind="grid") is None
    assert game_problem("pong", kind="grid") == "no maze"
