"""A sweep file is checked as strictly as a spec, and all faults of all members are reported at once."""

from pathlib import Path

import pytest

from atari_dqn.compare.atari100k_scores import columns_of
from atari_dqn.compare.median_estimate import subsets
from atari_dqn.compare.reference.studies import human_random
from atari_dqn.scale.axes import game_lists
from atari_dqn.scale.members import Sweep, load_sweep
from atari_dqn.spec.digest import spec_digest
from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.games import SINGLE_PLAYER_GAMES
from atari_dqn.spec.keys import flatten
from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.shipped import shipped_specs, shipped_sweeps


def loaded(folder: Path, text: str) -> Sweep:
    path = folder / "mine.toml"
    path.write_text(text)
    return load_sweep(path)


def names(sweep: Sweep) -> list[str]:
    return [member.name for member in sweep.members()]


def faults_of(folder: Path, text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        loaded(folder, text)
    return str(caught.value).replace(f"{folder}/", "").splitlines()


def test_members_are_the_product_and_each_seed_completes_the_table(tmp_path: Path):
    text = (
        'game = ["pong", "qbert"]\nseeds = 2\n[methods.a]\nspec = "pong_trackA"\n[methods.b]\nspec = "c51"\n'
    )
    assert names(loaded(tmp_path, text)) == [
        "a_pong_seed1", "b_pong_seed1", "a_qbert_seed1", "b_qbert_seed1",
        "a_pong_seed2", "b_pong_seed2", "a_qbert_seed2", "b_qbert_seed2",
    ]  # fmt: skip


def test_a_member_is_the_run_that_train_makes_of_the_same_keys(tmp_path: Path):
    text = (
        'spec = "rainbow"\ngame = ["alien", "pong"]\nseed = [4]\n[set.training]\ntotal_frames = 1_000_000\n'
    )
    (alien, _) = loaded(tmp_path, text).members()
    overrides = ["game=alien", "seed=4", "training.total_frames=1M", "learner.precision=fp32"]
    assert alien.digest == spec_digest(load_spec("rainbow", overrides).spec)
    assert alien.total_frames == 1_000_000


def test_without_axes_game_and_seed_are_those_of_the_spec(tmp_path: Path):
    assert names(loaded(tmp_path, 'spec = "breakout_trackA"')) == ["breakout_trackA_breakout_seed1"]


def test_a_folder_of_runs_does_not_hide_the_shipped_spec_of_its_name(tmp_path: Path):
    (tmp_path / "breakout_trackA").mkdir()
    assert names(loaded(tmp_path, 'spec = "breakout_trackA"')) == ["breakout_trackA_breakout_seed1"]


def test_a_grid_is_every_combination_named_by_its_values(tmp_path: Path):
    text = 'spec = "c51"\n[grid]\nlearner.batch_size = [16, 32]\ntoggles.double = [true, false]\n'
    assert names(loaded(tmp_path, text)) == [
        "c51_batch_size=16,double=true_pong_seed1",
        "c51_batch_size=16,double=false_pong_seed1",
        "c51_batch_size=32,double=true_pong_seed1",
        "c51_batch_size=32,double=false_pong_seed1",
    ]


def test_cases_are_a_list_with_names(tmp_path: Path):
    text = 'spec = "c51"\n[[cases]]\nname = "small"\nlearner.batch_size = 16\n'
    text += "[[cases]]\nlearner.batch_size = 64\n"
    assert names(loaded(tmp_path, text)) == ["c51_small_pong_seed1", "c51_batch_size=64_pong_seed1"]


def test_a_spec_is_found_next_to_the_sweep_file(tmp_path: Path):
    (tmp_path / "own.toml").write_text('track = "A"\ngame = "qbert"\nseed = 3\n')
    assert names(loaded(tmp_path, 'spec = "own.toml"')) == ["own_qbert_seed3"]


ROM = 'expected a ROM id of ale-py, such as "pong" or "ms_pacman"'
TOP = "an axis of the whole sweep; write `seed = [1, 2, 3]` at its top"
GRID_OF_A_MILLION = ("learner.batch_size", "learner.update_period_steps", "learner.target_period_updates")
FAULTS = {
    "nothing": (
        "seeds = 2",
        "mine.toml: spec: missing; "
        "expected a file or a shipped spec's name, or [methods.NAME] with a spec each",
    ),
    "no games": ('spec = "c51"\ngame = []', "mine.toml: game: is empty; expected at least one"),
    "no seeds": ('spec = "c51"\nseed = []', "mine.toml: seed: is empty; expected at least one"),
    "no methods": ("[methods]", "mine.toml: methods: is empty; expected at least one [methods.NAME]"),
    "no cases": ('spec = "c51"\ncases = []', "mine.toml: cases: is empty; expected at least one [[cases]]"),
    "no values": (
        'spec = "c51"\n[grid]\nlearner.batch_size = []',
        "mine.toml [grid]: learner.batch_size: found an empty list, expected a list of values",
    ),
    "an unknown game": (
        'spec = "c51"\ngame = ["pong", "brekout"]',
        f'mine.toml: game: found "brekout", {ROM}; did you mean "breakout"?',
    ),
    "an unknown list": (
        'spec = "c51"\ngame = "atari_56"',
        f'mine.toml: game: found "atari_56", {ROM}; did you mean "atari_5"?',
    ),
    "a game twice": ('spec = "c51"\ngame = ["pong", "pong"]', "mine.toml: game: names pong more than once"),
    "a game of another kind": (
        'spec = "c51"\ngame = "catch"',
        'mine.toml: game: found "catch", a toy game, but env.kind is "atari"; set env.kind = "catch"',
    ),
    "two axes of seeds": (
        'spec = "c51"\nseeds = 2\nseed = [1]',
        "mine.toml: seeds: found seed too; write one of them",
    ),
    "a seed of another type": (
        'spec = "c51"\nseed = [1, "2"]',
        'mine.toml: seed: found "2", expected an integer at least 0; did you mean 2?',
    ),
    "a key at the top": (
        'spec = "c51"\n[learner]\nbatch_size = 3',
        "mine.toml: learner: a key of the spec; write it in [set.learner], or in a method",
    ),
    "an unknown key": ('spec = "c51"\nseds = 3', 'mine.toml: seds: unknown key; did you mean "seeds"?'),
    "an axis as a key": ('spec = "c51"\n[grid]\nseed = [1, 2]', f"mine.toml [grid]: seed: {TOP}"),
    "two places": (
        'spec = "c51"\n[set]\nlearner.batch_size = 8\n[grid]\nlearner.batch_size = [8, 16]',
        "mine.toml: learner.batch_size: is written in [set] and in [grid]; write it in one of them",
    ),
    "duplicates": (
        '[methods.a]\nspec = "c51"\n[methods.b]\nspec = "c51"',
        "mine.toml: a and b are the same run twice: no key that can change results differs",
    ),
    "equal names": (
        'spec = "c51"\n[[cases]]\nname = "x"\nlearner.batch_size = 8\n'
        '[[cases]]\nname = "x"\nlearner.batch_size = 9',
        "mine.toml: 2 methods or cases have the name c51_x; name each",
    ),
    "an unknown spec": (
        'spec = "c52"',
        'c52: no such file; expected a TOML spec or the name of a shipped one; did you mean "c51"?',
    ),
    "too many": (
        'spec = "c51"\nseeds = 10_000\ngame = "atari_57"',
        "mine.toml: has 570,000 runs; expected at most 100,000",
    ),
    "too many combinations": (
        'spec = "c51"\n[grid]\n' + "".join(f"{key} = {list(range(1, 101))}\n" for key in GRID_OF_A_MILLION),
        "mine.toml: grid: has 1,000,000 combinations; expected at most 100,000",
    ),
    "a value of the grid twice": (
        'spec = "c51"\n[grid]\nlearner.batch_size = [32, 64, 32]',
        "mine.toml [grid]: learner.batch_size: names a value more than once",
    ),
    "an empty file": ("", "mine.toml: is empty; expected the keys of a sweep"),
    "a bad name": (
        '[methods."a b"]\nspec = "c51"',
        "mine.toml: methods.a b: a name consists of at most 80 letters, digits and _ . = , + -",
    ),
    "a name too long to record": (
        f'[methods.{"m" * 80}]\nspec = "c51"\n[[cases]]\nname = "{"a" * 80}"\n'
        "[grid]\nlearner.batch_size = [1024]\ntoggles.n_step = [3]",
        f"mine.toml: the run {'m' * 80}_{'a' * 80}_batch_size=1024,n_step=3_pong_seed1 has a name of "
        "197 characters, expected at most 191; name methods, and [[cases]] in place of a grid",
    ),
    "a spec that no method uses": (
        'spec = "c52"\n[methods.a]\nspec = "c51"',
        "mine.toml: spec: is used by no method, since each names its own; remove it, or that of a method",
    ),
    "a method without a spec": (
        "[methods.a]",
        "mine.toml: methods.a: has no spec; expected a file or a shipped spec's name",
    ),
    "keys of a method in a section of their own": (
        '[methods.a]\nspec = "c51"\nset = { learner.batch_size = 8 }',
        'mine.toml: methods.a: has a key "set"; write the keys of a method in [methods.a] itself',
    ),
}


@pytest.mark.parametrize("case", FAULTS, ids=str)
def test_a_fault_is_named_with_its_place(tmp_path: Path, case: str):
    text, expected = FAULTS[case]
    assert faults_of(tmp_path, text) == [expected]


def test_all_faults_of_all_members_are_reported_once(tmp_path: Path):
    text = """
game = ["pnog", "pong"]
seeds = 9
[set]
learner.batch_sice = 3
[methods.a]
spec = "c51"
[methods.b]
spec = "pong_trackA"
distribution.num_quantiles = 7
"""
    assert faults_of(tmp_path, text) == [
        'mine.toml: game: found "pnog", expected a ROM id of ale-py, such as "pong" or "ms_pacman"; '
        'did you mean "pong"?',
        'mine.toml [set]: learner.batch_sice: unknown key; did you mean "learner.batch_size"?',
        'mine.toml [methods.b]: distribution.num_quantiles: belongs to toggles.distribution = "qr_dqn", '
        'but toggles.distribution is "none"; remove it, or set toggles.distribution = "qr_dqn" (in b)',
    ]


def test_lists_of_games_are_those_of_the_published_tables():
    lists = game_lists()
    assert {game for game in SINGLE_PLAYER_GAMES if human_random(game, "atari57")} == set(lists["atari_57"])
    assert {game for game in SINGLE_PLAYER_GAMES if list(columns_of(game))} == set(lists["atari_100k_26"])
    five, ten = subsets()
    assert (set(five.coefficients), set(ten.coefficients)) == (set(lists["atari_5"]), set(lists["atari_10"]))
    assert [len(lists[name]) for name in ("atari_5", "atari_10", "atari_100k_26", "atari_57")] == [
        5,
        10,
        26,
        57,
    ]


@pytest.mark.parametrize("name", shipped_sweeps())
def test_every_shipped_sweep_is_valid(name: str):
    assert loaded_members(name) > 1


def loaded_members(name: str) -> int:
    return len(load_sweep(shipped_sweeps()[name]).members())


def test_a_sweep_is_no_spec():
    assert shipped_sweeps().keys() & shipped_specs().keys() == {
        "atari100k_der",
        "atari100k_der_dopamine",
        "atari100k_drq_eps",
    }
    assert "sweeps" not in str(shipped_specs()["atari100k_der"])


def test_actors_pong_compares_agents_that_differ_in_actors_alone():
    alone, small = (flatten(load_spec(name).spec) for name in ("apex_one_process", "apex_small"))
    differing = {key for key in alone.keys() | small.keys() if alone.get(key) != small.get(key)}
    of_system = {"system.actors_per_core", "system.cuda_graphs"}  # neither changes what is learned
    assert {key.partition(".")[0] for key in differing - of_system} == {"actors"}
