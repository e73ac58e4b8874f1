import ale_py.roms

from atari_dqn.spec.games import MULTI_PLAYER_GAMES, SINGLE_PLAYER_GAMES, TOY_GAME


def test_the_games_are_those_of_the_emulators_package():
    assert sorted((*SINGLE_PLAYER_GAMES, *MULTI_PLAYER_GAMES)) == sorted(ale_py.roms.get_all_rom_ids())


def test_there_are_104_games_for_one_player():
    assert len(SINGLE_PLAYER_GAMES) == 104
    assert not set(SINGLE_PLAYER_GAMES) & set(MULTI_PLAYER_GAMES)


def test_the_toy_game_is_no_rom():
    assert TOY_GAME not in ale_py.roms.get_all_rom_ids()
