"""The ROM ids of ale-py 0.12.1, listed here so that a spec can be checked without the emulator."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from atari_dqn.spec.suggest import did_you_mean

SINGLE_PLAYER_GAMES: tuple[str, ...] = tuple(
    """
    adventure air_raid alien amidar assault asterix asteroids atlantis atlantis2 backgammon bank_heist
    basic_math battle_zone beam_rider berzerk blackjack bowling boxing breakout carnival casino
    centipede chopper_command crazy_climber crossbow darkchambers defender demon_attack donkey_kong
    double_dunk earthworld elevator_action enduro entombed et fishing_derby flag_capture freeway frogger
    frostbite galaxian gopher gravitar hangman haunted_house hero human_cannonball ice_hockey jamesbond
    journey_escape kaboom kangaroo keystone_kapers king_kong klax koolaid krull kung_fu_master
    laser_gates lost_luggage mario_bros miniature_golf montezuma_revenge mr_do ms_pacman name_this_game
    othello pacman phoenix pitfall pitfall2 pong pooyan private_eye qbert riverraid road_runner robotank
    seaquest sir_lancelot skiing solaris space_invaders space_war star_gunner superman surround tennis
    tetris tic_tac_toe_3d time_pilot trondead turmoil tutankham up_n_down venture video_checkers
    video_chess video_cube video_pinball wizard_of_wor word_zapper yars_revenge zaxxon
    """.split()  # noqa: SIM905 — a hundred quoted lines would say no more
)
"""Games with a single-player mode; the emulator loads each of them."""

MULTI_PLAYER_GAMES: tuple[str, ...] = ("combat", "joust", "maze_craze", "warlords")
"""Games that need several players: the emulator exits the process when one is loaded for a single player."""

TOY_GAMES = ("catch", "recall")
"""Games that are environments of their own: each is the only game of the `env.kind` of its name."""

_GYM_AFFIXES = re.compile(r"^ale/|(no_?frameskip|deterministic)?-?v\d+$")
"""Prefix and suffix of Gym's ids, as in `ALE/Pong-v5` and `PongNoFrameskip-v4`."""


def game_problem(game: str, *, kind: str | None) -> str | None:
    """Describe why `game` is not a game of `env.kind = kind`; None if it is. `kind` is None if unknown."""
    if kind is None:
        return None if game in TOY_GAMES else _atari_problem(game)
    return GAME_CHECKS[kind](game)


def _atari_problem(game: str) -> str | None:
    if game in SINGLE_PLAYER_GAMES:
        return None
    if game in MULTI_PLAYER_GAMES:
        return f'found "{game}", which needs more than one player; expected a single-player game'
    if game in TOY_GAMES:
        return f'found "{game}", a toy game, but env.kind is "atari"; set env.kind = "{game}"'
    return f'found "{game}", expected a ROM id of ale-py, such as "pong" or "ms_pacman"' + _nearest(game)


def _toy_problem(toy: str, game: str) -> str | None:
    if game == toy:
        return None
    remedy = f'env.kind = "{game if game in TOY_GAMES else "atari"}"'
    return f'found "{game}", but env.kind is "{toy}"; set game = "{toy}", or {remedy}'


GAME_CHECKS: Mapping[str, Callable[[str], str | None]] = MappingProxyType(
    {"atari": _atari_problem, **{toy: partial(_toy_problem, toy) for toy in TOY_GAMES}}
)
"""The check of a game's name for each `env.kind`: it returns what is wrong, or None."""


def _nearest(game: str) -> str:
    squeezed = {name.replace("_", ""): name for name in SINGLE_PLAYER_GAMES}
    word = re.sub("[^a-z0-9]", "", _GYM_AFFIXES.sub("", game.lower()))
    return did_you_mean(squeezed.get(word, game), SINGLE_PLAYER_GAMES)
