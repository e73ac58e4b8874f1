"""Strict loading: each fault has a line in the error, and all are reported together."""

import copy
import dataclasses
from pathlib import Path

import pytest

from atari_dqn.errors import UserError
from atari_dqn.spec.errors import Fault, SpecError
from atari_dqn.spec.history import original_name
from atari_dqn.spec.keys import KEYS
from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.suggest import SYNONYMS

FORMER = original_name("env.num_envs")
FAULTS = {
    # strict types
    "true is not 1": ("[env]\nnum_envs = true", "env.num_envs: found true, expected an integer at least 1"),
    "1 is not true": ("[toggles]\ndouble = 1", "toggles.double: found 1, expected true or false"),
    "3.7 is not 3": ("[env]\nframe_skip = 3.7", "env.frame_skip: found 3.7, expected an integer at least 1"),
    "3.0 is not 3": ("[env]\nframe_skip = 3.0", "found 3.0, expected an integer at least 1; did you mean 3?"),
    '"5" is not 5': (
        '[learner]\nbatch_size = "5"',
        'learner.batch_size: found "5", expected an integer at least 1; did you mean 5?',
    ),
    '"0.5" is not 0.5': ('[learner]\ndiscount = "0.5"', 'found "0.5", expected a number from 0.0 to 1.0'),
    "true is not 1.0": ("[learner]\ndiscount = true", "found true, expected a number from 0.0 to 1.0"),
    "a date": ("[env]\nnum_envs = 2020-01-01", "env.num_envs: found 2020-01-01, expected an integer"),
    "an array": ("[env]\nnum_envs = [1]", "env.num_envs: found an array, expected an integer"),
    "a table": ("[env.num_envs]\na = 1", "env.num_envs: found a table, expected an integer"),
    "beyond 64 bits": (
        f"[env]\nnum_envs = {2**63}",
        f"found {2**63}, expected an integer at least 1 and at most 9,223,372,036,854,775,807",
    ),
    "beyond 64 bits and the key's own limit": (
        f"[evaluation]\nlight_episodes = {2**63}",
        f"found {2**63}, expected an integer at least 1 and at most 1,000,000",
    ),
    "too large for a float": (
        f"[learner]\nmax_abs_reward = {10**400}",
        "expected a number more than 0.0 and at most 1.79769e+308",
    ),
    # ranges
    "below the range": ("[env]\nnum_envs = 0", "env.num_envs: found 0, expected an integer at least 1"),
    "above the range": ("[learner]\ndiscount = 1.01", "found 1.01, expected a number from 0.0 to 1.0"),
    "open end": (
        "[env]\nsticky_probability = 1.0",
        "found 1.0, expected a number at least 0.0 and below 1.0",
    ),
    "NaN": (
        "[learner]\nmax_grad_norm = nan",
        "learner.max_grad_norm: found nan, expected a number more than 0.0",
    ),
    "NaN within": ("[learner]\ndiscount = nan", "learner.discount: found nan"),
    "infinity within": ("[learner]\ndiscount = inf", "learner.discount: found inf"),
    "infinite step": (
        "[optimizer]\nlearning_rate = inf",
        "found inf, expected a number more than 0.0 and at most 3.40282e+38",
    ),
    "minus infinity": ("[learner]\nmax_grad_norm = -inf", "learner.max_grad_norm: found -inf"),
    # choices
    "mistyped choice": (
        '[env]\nresize = "aera"',
        'env.resize: found "aera", expected one of "area", "bilinear"; did you mean "area"?',
    ),
    "unknown choice": (
        '[learner]\nloss = "x"',
        'learner.loss: found "x", expected one of "huber", "mse", or a name that an installed package adds, '
        "an entry point of atari_dqn.losses",
    ),
    # names
    "mistyped key": (
        "[learner]\nbach_size = 1",
        'learner.bach_size: unknown key; did you mean "learner.batch_size"?',
    ),
    "key of another section": ("[learner]\nframe_skip = 4", 'unknown key; did you mean "env.frame_skip"?'),
    "key of a section far away": ("[env]\ninit = 1", 'env.init: unknown key; did you mean "network.init"?'),
    "common name": (
        "[optimizer]\nlr = 1",
        'optimizer.lr: unknown key; did you mean "optimizer.learning_rate"?',
    ),
    "common name in another section": ("[learner]\nlr = 1", 'did you mean "optimizer.learning_rate"?'),
    "common symbol": ("[learner]\ngamma = 1", 'unknown key; did you mean "learner.discount"?'),
    "common name of one section": ("[replay]\nsize = 1", 'did you mean "replay.capacity_steps"?'),
    "beginning of a key": ("[exploration]\nepsilon = 1", 'did you mean "exploration.epsilon_end"?'),
    "toggle as a key of the learner": ("[learner]\nn_step = 3", 'did you mean "toggles.n_step"?'),
    "nothing similar": ("[env]\nlives = 3", "env.lives: unknown key"),
    "former and current name": (
        f"[env]\n{FORMER.removeprefix('env.')} = 4\nnum_envs = 2",
        f"env.num_envs: is written twice, also as {FORMER}, its former name; keep one of them",
    ),
    "infinite exponent": (
        '[env]\nnum_envs = 8\n[exploration]\nkind = "spectrum"\nspectrum_exponent = inf',
        "exploration.spectrum_exponent: found inf, expected a number at least 0.0 and at most 1,000",
    ),
    "quoted path": (
        '["learner.x"]\nbatch_size = 1',
        '"learner.x".batch_size: unknown key; did you mean "learner.ba',
    ),
    "mistyped section": ("[lerner]\nbatch_size = 1", 'unknown section [lerner]; did you mean "learner"?'),
    "empty unknown section": ("[lerner]", 'lerner: unknown section [lerner]; did you mean "learner"?'),
    "unknown everything": ("[zzz]\nqqqqq = 1", "zzz.qqqqq: unknown section [zzz]"),
    "section too deep": ("[env.more]\na = 1", "env.more: unknown section [env.more]"),
    # parts
    "adam's key under rmsprop": (
        "[optimizer]\nbeta1 = 0.9",
        'optimizer.beta1: belongs to optimizer.kind = "adam" or "radam", but optimizer.kind is '
        '"deepmind_rmsprop"; remove it, or set optimizer.kind = "adam" or "radam"',
    ),
    "rmsprop's key under adam": (
        '[optimizer]\nkind = "adam"\ngradient_decay = 0.9',
        'belongs to optimizer.kind = "deepmind_rmsprop", but optimizer.kind is "adam"; remove it, or set',
    ),
    # contradictions
    "prefill over capacity": (
        "[replay]\ncapacity_steps = 1000\nprefill_steps = 1001",
        "prefill_steps: found 1001 with replay.capacity_steps = 1000; the prefill must fit in the replay",
    ),
    "prefill under a minibatch": (
        "[replay]\nprefill_steps = 31",
        "replay.prefill_steps: found 31 with learner.batch_size = 32; the prefill must hold a minibatch",
    ),
    "parts of unequal size": (
        "[learner]\nbatch_size = 32\naccumulate = 5",
        "learner.accumulate: found 5 with learner.batch_size = 32; the parts of a minibatch must be equal",
    ),
    "prefill over budget": (
        "[training]\ntotal_frames = 200_000",
        "replay.prefill_steps: found 50000 with env.frame_skip = 4 and training.total_frames = 200000; ",
    ),
    "update period over budget": (
        "[learner]\nupdate_period_steps = 12_450_000",
        "learner.update_period_steps: found 12450000 with replay.prefill_steps = 50000 and env.num_envs = 1 "
        'and env.frame_skip = 4 and training.total_frames = 50000000 and replay.kind = "transitions"; '
        "the run would end before its first update",
    ),
    "update period over budget of several environments": (
        "[env]\nnum_envs = 8\n[learner]\nupdate_period_steps = 12_449_993",
        "the run would end before its first update",
    ),
    "prefill under environments": (
        "[env]\nnum_envs = 100\n[replay]\nprefill_steps = 299",
        "replay.prefill_steps: found 299 with env.num_envs = 100 and toggles.n_step = 1 and replay.kind = ",
    ),
    "environments over capacity": (
        "[env]\nnum_envs = 10\n[replay]\ncapacity_steps = 69\nprefill_steps = 50",
        "found 69 with env.num_envs = 10 and env.stack_frames = 4 and toggles.n_step = 1 and replay.kind = ",
    ),
    "rising exploration": (
        "[exploration]\nepsilon_start = 0.05",
        "exploration.epsilon_start: found 0.05 with exploration.epsilon_end = 0.1; ",
    ),
    "falling importance weights": (
        "[toggles]\nprioritized = true\n[replay]\nbeta_start = 1.0\nbeta_end = 0.5",
        "replay.beta_start: found 1.0 with replay.beta_end = 0.5; ",
    ),
    "shifts of nothing": (
        "[toggles]\nrandom_shifts = true\n[learner]\nshift_pixels = 0\nintensity_scale = 0.0",
        "learner.shift_pixels: found 0 with learner.intensity_scale = 0.0; ",
    ),
    "shifts out of sight": (
        "[toggles]\nrandom_shifts = true\n[learner]\nshift_pixels = 84",
        "learner.shift_pixels: found 84 with env.screen_size_pixels = 84; ",
    ),
    "root of a negative number": (
        "[optimizer]\ngradient_decay = 0.5",
        "optimizer.gradient_decay: found 0.5 with optimizer.squared_gradient_decay = 0.95; "
        "RMSProp's variance n − g² could be negative: make them equal",
    ),
    "root of a negative number after some steps": (
        "[optimizer]\nsquared_gradient_decay = 0.99",
        "optimizer.gradient_decay: found 0.95 with optimizer.squared_gradient_decay = 0.99; ",
    ),
    "light over full": (
        "[evaluation]\nlight_episodes = 31",
        "evaluation.light_episodes: found 31 with evaluation.full_episodes = 30; ",
    ),
    "no-ops over the cap": (
        "[env]\nmax_episode_frames = 30",
        "env.noop_max_frames: found 30 with env.max_episode_frames = 30; ",
    ),
    "no-ops over the evaluation's cap": (
        "[evaluation]\nmax_episode_frames = 30",
        "env.noop_max_frames: found 30 with evaluation.max_episode_frames = 30; ",
    ),
    "a step over the cap": (
        "[env]\nnoop_max_frames = 0\nmax_episode_frames = 3",
        "env.frame_skip: found 4 with env.max_episode_frames = 3; an episode must hold a step",
    ),
    "a step over the evaluation's cap": (
        "[env]\nnoop_max_frames = 0\n[evaluation]\nmax_episode_frames = 3",
        "env.frame_skip: found 4 with evaluation.max_episode_frames = 3; an episode must hold a step",
    ),
    "the toy without its game": (
        '[env]\nkind = "catch"',
        'game: found "pong", but env.kind is "catch"; set game = "catch", or env.kind = "atari"',
    ),
}


def error_of(path: Path, *overrides: str) -> SpecError:
    with pytest.raises(SpecError) as caught:
        load_spec(path, overrides)
    return caught.value


@pytest.mark.parametrize(("more", "phrase"), FAULTS.values(), ids=FAULTS.keys())
def test_fault_gives_one_line_with_file_key_found_and_expected(write_spec, more: str, phrase: str):
    path = write_spec(more)
    error = error_of(path)
    assert len(error.faults) == 1, str(error)
    assert str(error).startswith(f"{path}: ")
    assert phrase in str(error)


@pytest.mark.parametrize(
    "overrides",
    [
        ["replay.prefill_steps=32"],  # a minibatch
        ["replay.prefill_steps=48", "env.num_envs=16"],  # a step and two spare rows of each environment
        ["replay.prefill_steps=50", "replay.capacity_steps=70", "env.num_envs=10"],  # 4 + 1 + 2 rows of each
        ["replay.prefill_steps=1_000", "replay.capacity_steps=1_000"],
        ["training.total_frames=200_017"],  # 50,000 steps of 4 frames, the 4 of a period, and the next one
        ["learner.update_period_steps=12_449_999"],  # of 12.5 million steps, the prefill has 50,000
        ["learner.update_period_steps=12_449_992", "env.num_envs=8"],
        ["toggles.random_shifts=true", "learner.shift_pixels=83", "learner.intensity_scale=0.0"],
        ["toggles.random_shifts=true", "learner.shift_pixels=0", "learner.intensity_scale=0.1"],
        ["evaluation.light_episodes=30"],
        ["env.max_episode_frames=31", "evaluation.max_episode_frames=31"],
        ["env.noop_max_frames=0", "env.max_episode_frames=4", "evaluation.max_episode_frames=4"],
    ],
    ids=" ".join,
)
def test_values_that_just_fit_together_are_accepted(write_spec, overrides: list[str]):
    assert load_spec(write_spec(), overrides).spec.game == "pong"


GAMES = {
    "near miss": ("breakuot", 'did you mean "breakout"?'),
    "other systems' name": ("PongNoFrameskip-v4", 'did you mean "pong"?'),
    "namespaced name": ("ALE/MsPacman-v5", 'did you mean "ms_pacman"?'),
    "capitals": ("SpaceInvaders", 'did you mean "space_invaders"?'),
    "nothing like it": ("zzzzz", 'found "zzzzz", expected a ROM id of ale-py, such as "pong" or "ms_pacman"'),
    "two players": (
        "joust",
        'found "joust", which needs more than one player; expected a single-player game',
    ),
    "toy game on the emulator": (
        "catch",
        'found "catch", a toy game, but env.kind is "atari"; set env.kind = "catch"',
    ),
}


@pytest.mark.parametrize(("game", "phrase"), GAMES.values(), ids=GAMES.keys())
def test_a_game_that_cannot_be_played_is_refused_with_the_reason(write_spec, game: str, phrase: str):
    message = str(error_of(write_spec(base=f'track = "A"\ngame = "{game}"\nseed = 1\n')))
    assert f": game: {phrase}" in message or message.endswith(phrase)


@pytest.mark.parametrize("game", ["combat", "joust", "maze_craze", "warlords"])
def test_each_game_for_several_players_is_refused(write_spec, game: str):
    assert "needs more than one player" in str(error_of(write_spec(), f"game={game}"))


def test_nothing_is_suggested_for_a_key_like_no_other(write_spec):
    assert "did you mean" not in str(error_of(write_spec("[env]\nlives = 3")))


def test_common_names_stand_for_keys_of_the_schema():
    assert set(SYNONYMS.values()) <= KEYS.keys()
    assert not SYNONYMS.keys() & KEYS.keys()


def test_a_key_of_the_file_may_be_overridden_by_its_former_name(write_spec):
    overrides = [f"{FORMER}=3", "env.num_envs=4", f"{FORMER}=5"]
    assert load_spec(write_spec("[env]\nnum_envs = 2"), overrides).spec.env.num_envs == 5


def test_five_faults_give_five_lines(write_spec):
    path = write_spec(
        base='track = "A"\ngame = "pogn"\n',  # 1: the game, 2: no seed
        more='[env]\nnum_envs = "2"\n[learner]\nbach_size = 1\n[optimizer]\nbeta1 = 0.9\n',  # 3, 4, 5
    )
    error = error_of(path)
    keys = [fault.key for fault in error.faults]
    assert sorted(keys) == ["env.num_envs", "game", "learner.bach_size", "optimizer.beta1", "seed"]
    assert len(str(error).splitlines()) == 5


def test_faults_of_the_file_and_of_overrides_are_reported_together(write_spec):
    error = error_of(write_spec("[env]\nnum_envs = 0\n"), "learner", "learner.batch_size=0", "game=pogn")
    assert [fault.where.rpartition("/")[2] for fault in error.faults].count("--set") == 3
    assert len(error.faults) == 4


def test_contradiction_is_reported_together_with_other_faults(write_spec):
    error = error_of(write_spec("[env]\nnum_envs = 0\n[evaluation]\nlight_episodes = 31\n"))
    assert [fault.key for fault in error.faults] == ["env.num_envs", "evaluation.light_episodes"]


def test_quoted_key_with_a_dot_is_not_the_dotted_key(write_spec):
    error = error_of(write_spec('"learner.batch_size" = 64\n'))
    assert str(error).endswith('"learner.batch_size": unknown key; write learner.batch_size without quotes')


def test_invalid_value_is_not_replaced_by_the_tracks_in_rules_on_combinations(write_spec):
    error = error_of(write_spec('[replay]\ncapacity_steps = "5M"\nprefill_steps = 2_000_000\n'))
    assert [fault.key for fault in error.faults] == ["replay.capacity_steps"]


def test_an_override_does_not_hide_a_fault_of_the_file(write_spec):
    error = error_of(write_spec("[env]\nnum_envs = 0\n"), "env.num_envs=2")
    assert [fault.key for fault in error.faults] == ["env.num_envs"]


def test_invalid_choice_of_part_gives_no_faults_for_keys_that_depend_on_it(write_spec):
    error = error_of(write_spec('[optimizer]\nkind = "adm"\nbeta1 = 0.9\n'))
    assert [fault.key for fault in error.faults] == ["optimizer.kind"]


@pytest.mark.parametrize("key", ["track", "game", "seed"])
def test_track_game_and_seed_are_required(write_spec, key: str):
    lines = {"track": 'track = "A"\n', "game": 'game = "pong"\n', "seed": "seed = 1\n"}
    del lines[key]
    error = error_of(write_spec(base="".join(lines.values())))
    assert [fault.key for fault in error.faults] == [key]
    assert error.faults[0].problem.startswith("missing; expected ")


def test_an_unknown_track_does_not_hide_the_other_faults(write_spec):
    error = error_of(write_spec(base='track = "Z"\ngame = "pong"\n', more="[env]\nnum_envs = 0\n"))
    assert [fault.key for fault in error.faults] == ["track", "env.num_envs", "seed"]


def test_spec_error_is_a_user_error_with_exit_code_2(write_spec):
    error = error_of(write_spec("[env]\nnum_envs = 0"))
    assert isinstance(error, UserError)
    assert error.exit_code == 2


def test_integer_value_of_a_float_key_becomes_a_float(write_spec):
    discount = load_spec(write_spec("[learner]\ndiscount = 1")).spec.learner.discount
    assert discount == 1.0
    assert type(discount) is float


def test_integer_of_more_than_64_bits_is_accepted_where_it_becomes_a_float(write_spec):
    assert load_spec(write_spec(f"[learner]\nmax_abs_reward = {10**20}")).spec.learner.max_abs_reward == 1e20


def test_infinity_is_accepted_where_it_means_no_limit(write_spec):
    assert load_spec(write_spec("[learner]\nmax_abs_reward = inf")).spec.learner.max_abs_reward == float(
        "inf"
    )


def test_an_empty_section_changes_nothing(write_spec):
    assert load_spec(write_spec("[env]\n")) == load_spec(write_spec())


def test_spec_is_named_after_its_file(write_spec):
    assert load_spec(write_spec(name="pong_trackA.toml")).name == "pong_trackA"


def test_a_spec_is_frozen(write_spec):
    resolved = load_spec(write_spec())
    with pytest.raises(dataclasses.FrozenInstanceError):
        resolved.spec.seed = 2  # type: ignore[misc]


@pytest.mark.parametrize(("gradient", "squared"), [(0.5, 0.5), (0.0, 0.0), (1.0, 0.95), (1.0, 1.0)])
def test_decays_whose_radicand_is_never_negative_are_accepted(write_spec, gradient: float, squared: float):
    path = write_spec(f"[optimizer]\ngradient_decay = {gradient}\nsquared_gradient_decay = {squared}")
    assert load_spec(path).spec.optimizer.gradient_decay == gradient


def test_a_copy_of_an_error_as_another_process_gets_it_has_the_same_faults():
    error = SpecError([Fault("a.toml", "seed", "found 1.5"), Fault("a.toml", "", "no track")])
    copied = copy.copy(error)
    assert copied.faults == error.faults
    assert str(copied) == "a.toml: seed: found 1.5\na.toml: no track"
