"""A tune file is checked as strictly as a spec: every fault at once, with the remedy."""

from pathlib import Path

import pytest

from atari_dqn.scale.tuning.space import Dimension
from atari_dqn.scale.tuning.tune import Budget, Pruning, Sampler, Tune
from atari_dqn.scale.tuning.tune_file import load_tune
from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.history import original_name
from atari_dqn.spec.shipped import find_shipped, shipped_specs, shipped_tunes

TINY = Path(__file__).parents[1] / "tiny_catch.toml"
RATE = "optimizer.learning_rate = { log = [1e-5, 1e-2] }\n"
HEAD = f'spec = "{TINY}"\n'
BUDGET = "[budget]\ntrials = 3\n"
GOOD = f"{HEAD}[space]\n{RATE}{BUDGET}"


def loaded(folder: Path, text: str) -> Tune:
    path = folder / "mine.toml"
    path.write_text(text)
    return load_tune(path)


def faults_of(folder: Path, text: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        loaded(folder, text)
    return str(caught.value).replace(f"{folder}/", "").splitlines()


def faults_of_space(folder: Path, space: str) -> list[str]:
    prefix = "mine.toml [space]: "
    return [fault.removeprefix(prefix) for fault in faults_of(folder, f"{HEAD}[space]\n{space}\n{BUDGET}")]


def test_a_file_with_a_space_and_a_budget_has_the_defaults_of_everything_else(tmp_path: Path):
    tune = loaded(tmp_path, GOOD)
    assert (tune.name, tune.games, tune.seeds, tune.threads) == ("mine", ("catch",), (1,), 1)
    assert tune.objective.score == "mean_return"
    assert (tune.objective.statistic, tune.objective.direction) == ("mean", "maximize")
    assert tune.objective.at_frames == 1_200
    assert tune.evaluation_frames == (600, 1_200)
    assert tune.pruning is None
    assert tune.sampler == Sampler(seed=0, random_trials=10, trials_at_once=1)
    assert tune.budget == Budget(trials=3, hours=None)


def test_each_kind_of_dimension_is_read(tmp_path: Path):
    space = (
        "learner.discount = { uniform = [0.9, 1] }\ntoggles.n_step = { integer = [1, 5] }\n"
        "learner.target_period_updates = { log = [5, 20] }\nlearner.loss = { choice = ['huber', 'mse'] }\n"
    )
    found = {each.key: each for each in loaded(tmp_path, f"{HEAD}[space]\n{space}{BUDGET}").space}
    discount = found["learner.discount"]
    assert (discount.kind, discount.low, discount.high, discount.is_integer) == ("uniform", 0.9, 1.0, False)
    assert type(discount.high) is float
    assert (found["toggles.n_step"].kind, found["toggles.n_step"].is_integer) == ("integer", True)
    assert found["learner.target_period_updates"].is_integer
    assert found["learner.loss"].choices == ("huber", "mse")


@pytest.mark.parametrize("written", ["toggles.prioritized = true", '"toggles.prioritized" = [true]'])
def test_a_condition_may_be_written_with_a_dotted_or_a_quoted_key(tmp_path: Path, written: str):
    space = f"replay.alpha = {{ uniform = [0.3, 0.9], when = {{ {written} }} }}\n"
    space += "toggles.prioritized = { choice = [true, false] }\n"
    first, second = loaded(tmp_path, f"{HEAD}[space]\n{space}{BUDGET}").space
    assert (first.key, second.key) == ("toggles.prioritized", "replay.alpha")
    assert second.when == {"toggles.prioritized": (True,)}
    assert second.applies({"toggles.prioritized": True})
    assert not second.applies({"toggles.prioritized": False})
    assert not second.applies({})


def test_a_chain_of_conditions_is_in_an_order_in_which_each_follows_those_it_depends_on(tmp_path: Path):
    space = (
        "replay.alpha = { uniform = [0.3, 0.9], when = { toggles.prioritized = true } }\n"
        "toggles.prioritized = { choice = [true, false], when = { toggles.double = true } }\n"
        "toggles.double = { choice = [true, false] }\n"
    )
    tune = loaded(tmp_path, f"{HEAD}[space]\n{space}{BUDGET}")
    assert [each.key for each in tune.space] == ["toggles.double", "toggles.prioritized", "replay.alpha"]


def test_a_searched_key_of_the_base_spec_is_left_to_the_trials(tmp_path: Path):
    tune = loaded(tmp_path, f"{HEAD}[space]\nlearner.batch_size = {{ choice = [8, 16] }}\n{BUDGET}")
    assert "learner.batch_size" not in tune.base
    assert tune.base["replay.capacity_steps"] == 150


def test_frames_of_evaluations_end_with_that_of_the_objective(tmp_path: Path):
    text = f"{GOOD}[objective]\nat_frames = 600\n[set]\nevaluation.full_period_frames = 300\n"
    tune = loaded(tmp_path, text)
    assert (tune.objective.at_frames, tune.evaluation_frames) == (600, (300, 600))


def test_every_fault_of_a_file_is_reported_at_once(tmp_path: Path):
    text = (
        f"sed = 3\nlearner.loss = 'huber'\n{HEAD}[space]\noptimizer.lr = {{ log = [1, 2] }}\n"
        "[objective]\nscore = 'mean_retrun'\n[pruning]\nstartup_trials = 0\n[sampler]\nsed = 1\n[budget]\n"
    )
    assert faults_of(tmp_path, text) == [
        'mine.toml: sed: unknown key; did you mean "seed"?',
        "mine.toml: learner: a key of the spec; write it in [set.learner] or [space.learner]",
        'mine.toml [space]: optimizer.lr: unknown key; did you mean "optimizer.learning_rate"?',
        'mine.toml: objective.score: found "mean_retrun", expected one of "mean_return", "median_return", '
        '"min_return", "max_return", "mean_length_frames", "human_normalised"; did you mean "mean_return"?',
        "mine.toml: pruning.startup_trials: found 0, expected an integer at least 1",
        'mine.toml: sampler.sed: unknown key; did you mean "seed"?',
        "mine.toml: budget: has neither trials nor hours; expected one of them, or both",
    ]


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        ("[budget]\nhours = 1" + 400 * "0", "mine.toml: budget.hours: found 1000"),
        (
            f"{BUDGET}[sampler]\ntrials_at_once = 1_001\n",
            "mine.toml: sampler.trials_at_once: found 1001, expected an integer at least 1 and at most 1,000",
        ),
        (
            f"{BUDGET}[set]\nevaluation.full_period_frames = 1\ntraining.total_frames = 1_000_000_000_000\n",
            "mine.toml: evaluation.full_period_frames: makes 1,000,000,000,000 full evaluations in",
        ),
    ],
)  # fmt: skip
def test_a_number_that_no_memory_holds_is_refused(tmp_path: Path, section: str, fault: str):
    assert faults_of(tmp_path, f"{HEAD}[space]\n{RATE}{section}")[0].startswith(fault)


@pytest.mark.parametrize(
    ("space", "fault"),
    [
        ("", "mine.toml: space: has no key; expected keys as learner.batch_size = { log = [1e-5, 1e-2] }"),
        ("learner.discount = 3", "learner.discount: found 3, expected kind and values"),
        ("learner.discount = { integer = [0, 1] }", "learner.discount: found integer, expected uniform o"),
        ("toggles.n_step = { uniform = [1, 5] }", "toggles.n_step: found uniform, expected integer or log"),
        ("toggles.double = { log = [1, 2] }", "toggles.double: found log, expected choice for true and f"),
        ("toggles.n_step = { lgo = [1, 2] }", 'toggles.n_step: lgo: unknown key; did you mean "log"?'),
        ("toggles.n_step = { integer = [0, 5] }", "toggles.n_step: integer: found 0, expected an integer"),
        ("toggles.n_step = { integer = [5, 1] }", "toggles.n_step: integer: found 5 to 1, expected the l"),
        ("toggles.n_step = { integer = [1] }", "toggles.n_step: integer: found 1 values, expected two nu"),
        ("toggles.n_step = { choice = [3] }", "toggles.n_step: choice: has a single value; write toggles"),
        ("toggles.n_step = { choice = [] }", "toggles.n_step: choice: found an empty list, expected a li"),
        ("toggles.n_step = { choice = [3, 3] }", "toggles.n_step: choice: names a value more than once"),
        ("learner.discount = { log = [0, 1] }", "learner.discount: log: found the lowest value 0, expect"),
        ("learner.max_abs_reward = { uniform = [1, inf] }", "learner.max_abs_reward: uniform: found 1 to in"),
        ("seed = { choice = [1, 2] }", "seed: cannot be searched: name the seeds at the top: seeds = 3"),
        ("evaluation.epsilon = { uniform = [0, 1] }", "evaluation.epsilon: cannot be searched: scores of"),
        ("gates.max_grad_norm = { log = [1, 2] }", "gates.max_grad_norm: cannot be searched: it cannot c"),
        ("training.total_frames = { log = [1, 2] }", "training.total_frames: cannot be searched: the sco"),
    ],
)  # fmt: skip
def test_a_dimension_at_fault_is_refused_with_its_remedy(tmp_path: Path, space: str, fault: str):
    assert faults_of_space(tmp_path, space)[0].startswith(fault)


def test_auto_is_not_among_the_values_of_a_choice(tmp_path: Path):
    (fault,) = faults_of_space(tmp_path, 'learner.precision = { choice = ["auto", "bf16"] }')
    assert fault == "learner.precision: choice: cannot be searched as auto; name the values"


@pytest.mark.parametrize(
    "key",
    [
        "track", "env.sticky_probability", "env.flicker_probability", "env.noop_max_frames",
        "env.full_action_set", "env.frame_skip", "env.resize", "env.screen_size_pixels",
    ],
)  # fmt: skip
def test_key_of_the_protocol_of_evaluations_is_not_searched(tmp_path: Path, key: str):
    (fault,) = faults_of_space(tmp_path, f"{key} = {{ choice = [1, 2] }}")
    assert fault == f"{key}: cannot be searched: scores of different protocols cannot be compared"


ALPHA = "replay.alpha = { uniform = [0.3, 0.9], when = { toggles.prioritized = true } }"


@pytest.mark.parametrize(
    ("space", "fault"),
    [
        (ALPHA, "when toggles.prioritized: it has false in every trial, so that replay.alpha never appli"),
        (
            "replay.alpha = { uniform = [0, 1], when = { env.frame_skip = 4 } }",
            "when env.frame_skip: it is 4 in every trial; leave the condition out",
        ),
        (
            f"{ALPHA}\ntoggles.prioritized = {{ choice = [true, false], when = {{ replay.alpha = 0.5 }} }}",
            "the conditions of replay.alpha, toggles.prioritized depend on each other in a circle",
        ),
        (
            "toggles.double = { choice = [true, false], when = { toggles.double = true } }",
            "when toggles.double: a key cannot depend on itself",
        ),
        (
            "learner.discount = { uniform = [0.9, 1], when = { toggles.n_step = 5 } }\n"
            "toggles.n_step = { integer = [1, 3] }",
            "when toggles.n_step: it is never 5; the space has toggles.n_step: integer 1 to 3",
        ),
        (
            "toggles.double = { choice = [true, false], when = { toggles.dulling = true } }",
            'when toggles.dulling: unknown key; did you mean "toggles.dueling"?',
        ),
    ],
)
def test_a_condition_that_can_never_hold_or_always_holds_is_refused(tmp_path: Path, space: str, fault: str):
    assert fault in "\n".join(faults_of_space(tmp_path, space))


def test_a_key_of_a_toggle_without_a_condition_is_refused_with_the_condition(tmp_path: Path):
    space = "toggles.prioritized = { choice = [true, false] }\nreplay.alpha = { uniform = [0.3, 0.9] }"
    (fault,) = faults_of_space(tmp_path, space)
    assert "or search it when = { toggles.prioritized = true }" in fault
    assert fault.endswith("(in a trial with toggles.prioritized = false, replay.alpha = 0.3)")


def test_a_combination_that_no_run_can_have_is_refused_with_an_example(tmp_path: Path):
    (fault,) = faults_of_space(tmp_path, "replay.prefill_steps = { integer = [50, 400] }")
    assert "replay.prefill_steps: found 400 with replay.capacity_steps = 150" in fault
    assert fault.endswith("(in a trial with replay.prefill_steps = 400)")


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ("[objective]\nat_frames = 700", "objective.at_frames: found 700, at which the spec has no full "),
        ("[objective]\nat_frames = 2_400", "expected one of 600, 1,200 (evaluation.full_period_frames, t"),
        ("[objective]\nscore = 'human_normalised'", "catch has no human score; expected a game of the 57"),
        ("[pruning]\nwarmup_frames = 1_000", "there is one seed, and no full evaluation from frame 1,000"),
        ("[set]\noptimizer.learning_rate = 0.1", "is written in [set] and in [space]; write it in one of"),
        ("[set]\nseed = 4", "seed: an axis of the whole tune; write it at its top"),
        ("[sampler]\ntrials_at_once = 0", "sampler.trials_at_once: found 0, expected an integer at least"),
    ],
)  # fmt: skip
def test_what_the_spec_cannot_give_is_refused(tmp_path: Path, more: str, fault: str):
    assert fault in "\n".join(faults_of(tmp_path, f"{GOOD}{more}\n"))


def test_returns_of_different_games_are_not_averaged(tmp_path: Path):
    text = f'spec = "pong_quick"\ngame = ["pong", "breakout"]\n[space]\n{RATE}{BUDGET}'
    (fault,) = faults_of(tmp_path, text)
    assert "mean_return of different games cannot be averaged; expected human_normalised" in fault


def test_games_cut_at_another_length_than_published_ones_are_not_normalised(tmp_path: Path):
    text = f'spec = "pong_quick"\n[space]\n{RATE}{BUDGET}[objective]\nscore = "human_normalised"\n'
    assert loaded(tmp_path, text).objective.score == "human_normalised"
    (fault,) = faults_of(tmp_path, f"{text}[set]\nevaluation.max_episode_frames = 20_000\n")
    assert "games cut at 20,000 frames cannot be normalised" in fault


def test_pruning_over_seeds_needs_no_early_evaluation(tmp_path: Path):
    text = f"seeds = 2\n{GOOD}[pruning]\nwarmup_frames = 1_200\n"
    assert loaded(tmp_path, text).pruning == Pruning(startup_trials=5, warmup_frames=1_200)


def test_shipped_tunes_are_found_by_name_and_valid():
    assert shipped_tunes()
    for name, path in shipped_tunes().items():
        assert find_shipped(Path(name), shipped_tunes()) == path
        assert load_tune(path).name == name
        assert name not in shipped_specs()


def test_a_dimension_contains_its_values_and_no_others():
    numbers = Dimension(key="learner.discount", kind="uniform", low=0.5, high=1.0, when={})
    integers = Dimension(key="toggles.n_step", kind="integer", low=1, high=3, when={})
    toggles = Dimension(key="toggles.double", kind="choice", choices=(True,), when={})
    assert [numbers.contains(value) for value in (0.5, 1, 1.01, True, "x")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    assert [integers.contains(value) for value in (1, 3, 2.0, 4)] == [True, True, False, False]
    assert [toggles.contains(value) for value in (True, False, 1)] == [True, False, False]


def test_a_key_that_is_searched_by_its_former_name_too_is_a_fault(tmp_path: Path):
    leaf = original_name("env.num_envs").removeprefix("env.")
    space = f"env.{leaf} = {{ choice = [1, 2] }}\nenv.num_envs = {{ choice = [1, 4] }}"
    assert faults_of_space(tmp_path, space) == [
        "env.num_envs: is written twice, once by its former name; keep one of them"
    ]
