import json
import math
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tiny import run

from atari_dqn.compare.comparison import Comparison, GroupResult, compare
from atari_dqn.compare.group import group_runs
from atari_dqn.compare.load import load_runs
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files.atomic import sha256_of_file
from atari_dqn.spec.digest import cannot_change_results
from atari_dqn.spec.keys import Scalar
from runs import PERIOD_FRAMES, make_run

NAN = math.nan


def compared(*paths: Path, **options: Any) -> Comparison:
    return compare(paths, **{"human_table": "atari57", **options})


def only(*paths: Path, **options: Any) -> GroupResult:
    (result,) = compared(*paths, **options).results
    return result


@pytest.fixture
def seeds(tmp_path: Path) -> list[Path]:
    """Three seeds of Track A on Pong, evaluated four times."""
    finals = {1: 10.0, 2: 12.0, 3: 20.0}
    return [
        make_run(tmp_path / f"s{seed}", [-20.0, -5.0, 15.0, final], overrides=[f"seed={seed}"])
        for seed, final in finals.items()
    ]


def test_runs_that_differ_in_their_seed_alone_are_one_group(seeds: list[Path]):
    result = only(*seeds)
    assert [run.seed for run in result.group.runs] == [1, 2, 3]
    assert (result.last.n, result.last.values) == (3, [10.0, 12.0, 20.0])


def test_statistics_are_over_the_final_scores(seeds: list[Path]):
    last = only(*seeds).last
    assert {name: estimate.value for name, estimate in last.estimates.items()} == {
        "mean": 14.0, "median": 12.0, "iqm": 14.0,
    }  # fmt: skip
    assert last.quartiles == (11.0, 16.0)
    assert last.env_frames == 2_000_000


def test_best_is_of_each_seed_its_maximum(seeds: list[Path]):
    assert only(*seeds).best.values == [15.0, 15.0, 20.0]


def test_at_a_frame_the_latest_evaluation_before_it_counts(seeds: list[Path]):
    result = only(*seeds, at_frames=1_200_000)
    assert (result.last.values, result.last.env_frames) == ([-5.0, -5.0, -5.0], 1_000_000)
    assert result.best.values == [-5.0, -5.0, -5.0]


def test_another_key_is_another_group_named_by_it(seeds: list[Path], tmp_path: Path):
    double = make_run(tmp_path / "double", [0.0], overrides=["seed=1", "toggles.double=true"])
    labels = [result.group.method.label for result in compared(*seeds, double).results]
    assert labels == ["pong_trackA double=false", "pong_trackA double=true"]


def labels_of(folder: Path, *changes: list[str]) -> list[str]:
    """Return the labels of groups of one run each, which differ from Track A in these keys."""
    runs = [make_run(folder / str(place), [0.0], overrides=keys) for place, keys in enumerate(changes)]
    return [result.group.method.label for result in compared(*runs).results]


MANY_KEYS = ["env.num_envs=8", "learner.batch_size=8", "learner.loss=mse", "replay.prefill_steps=9_000"]


def test_groups_that_differ_in_many_keys_all_have_names_of_their_own(tmp_path: Path):
    changes = [MANY_KEYS[:count] for count in range(len(MANY_KEYS) + 1)]
    assert len(set(labels_of(tmp_path, *changes))) == len(changes)


def test_a_groups_name_begins_with_what_tells_it_apart_and_counts_what_else_differs(tmp_path: Path):
    assert labels_of(tmp_path, [], MANY_KEYS, [*MANY_KEYS, "toggles.double=true"]) == [
        "pong_trackA double=false, batch_size=32, loss=huber, and 2 keys more",
        "pong_trackA double=false, batch_size=8, loss=mse, and 2 keys more",
        "pong_trackA double=true, batch_size=8, loss=mse, and 2 keys more",
    ]


def test_of_groups_that_many_keys_tell_apart_each_is_named_by_what_is_unusual_in_it(tmp_path: Path):
    changes = [[], *([key] for key in MANY_KEYS), MANY_KEYS[:2]]
    assert labels_of(tmp_path, *changes) == [
        "pong_trackA as most", "pong_trackA num_envs=8", "pong_trackA batch_size=8", "pong_trackA loss=mse",
        "pong_trackA prefill_steps=9,000", "pong_trackA batch_size=8, num_envs=8",
    ]  # fmt: skip


def test_of_groups_with_a_key_of_its_own_each_none_is_named_without_it(tmp_path: Path):
    changes = [[key] for key in (*MANY_KEYS, "env.stack_frames=3")]
    assert labels_of(tmp_path, *changes) == [
        "pong_trackA num_envs=8", "pong_trackA batch_size=8", "pong_trackA loss=mse",
        "pong_trackA prefill_steps=9,000", "pong_trackA stack_frames=3",
    ]  # fmt: skip


def test_keys_that_come_with_a_toggle_are_counted_and_not_named(tmp_path: Path):
    labels = labels_of(tmp_path, [], ["toggles.random_shifts=true"])
    assert labels == [
        "pong_trackA random_shifts=false, and 2 keys more", "pong_trackA random_shifts=true, and 2 keys more"
    ]  # fmt: skip


def test_a_key_whose_last_word_others_have_too_is_named_whole(tmp_path: Path):
    labels = labels_of(tmp_path, ["optimizer.epsilon=0.1"], ["optimizer.epsilon=0.2"])
    assert labels == ["pong_trackA optimizer.epsilon=0.1", "pong_trackA optimizer.epsilon=0.2"]


def test_a_group_has_the_name_of_its_spec_though_it_has_the_game_in_it(tmp_path: Path):
    run = make_run(tmp_path / "lr", [0.0], spec="catch_smoke.toml")
    assert compared(run).results[0].group.method.label == "catch_smoke"


def test_specs_whose_names_differ_in_the_game_alone_are_one_method_without_it(tmp_path: Path):
    specs = ("pong_trackA.toml", "breakout_trackA.toml")
    runs = [make_run(tmp_path / spec, [0.0], spec=spec) for spec in specs]
    assert {result.group.method.label for result in compared(*runs).results} == {"trackA"}


def test_namesakes_of_which_one_plays_the_game_of_their_name_are_distinguished(tmp_path: Path):
    own = make_run(tmp_path / "own", [0.0], spec="catch_smoke.toml")
    keys = ["game=pong", "env.kind=atari", "learner.batch_size=8"]
    other = make_run(tmp_path / "other", [0.0], spec="catch_smoke.toml", overrides=keys)
    provenance = other / "provenance.json"  # as a sweep names its runs
    provenance.write_text(provenance.read_text().replace("catch_smoke_pong", "catch_smoke"))
    labels = [result.group.method.label for result in compared(own, other).results]
    assert all(label.startswith("catch_smoke batch_size=") for label in labels)
    assert len(set(labels)) == 2


def test_a_group_whose_spec_is_named_for_its_game_alone_is_named_for_its_agent(tmp_path: Path):
    run = make_run(tmp_path / "pong.toml", [0.0], overrides=["toggles.double=true"])
    provenance = run / "provenance.json"
    provenance.write_text(provenance.read_text().replace("pong_trackA", "pong"))
    assert compared(run).results[0].group.method.label == "double_dqn"


def make_auto_run(path: Path, precision: str, seed: int) -> Path:
    """Create a run whose precision was `auto` and was resolved to this one."""
    overrides = [f"seed={seed}", f"learner.precision={precision}"]
    return make_run(path, [0.0], overrides=overrides, auto={"learner.precision": precision})


def test_seeds_whose_machines_chose_different_precisions_are_one_group_that_says_so(tmp_path: Path):
    chosen = {1: "fp32", 2: "bf16", 3: "bf16"}
    runs = [make_auto_run(tmp_path / str(seed), precision, seed) for seed, precision in chosen.items()]
    comparison = compared(*runs)
    assert [run.seed for run in comparison.results[0].group.runs] == [1, 2, 3]
    assert warned(
        comparison,
        "learner.precision was auto, and the machines chose different values: "
        "fp32 for seed 1; bf16 for seeds 2, 3",
    )
    assert warned(comparison, "marked A*: deviates in learner.precision")


def test_seeds_of_different_numbers_of_threads_are_one_group_that_says_so(tmp_path: Path):
    runs = [
        make_run(tmp_path / str(seed), [0.0], overrides=[f"seed={seed}", f"learner.threads={threads}"])
        for seed, threads in {1: 1, 2: 2, 3: 2}.items()
    ]
    comparison = compared(*runs)
    assert [run.seed for run in comparison.results[0].group.runs] == [1, 2, 3]
    assert warned(comparison, "learner.threads differs, and so does rounding: 1 for seed 1; 2 for seeds 2, 3")


def test_threads_of_a_run_from_before_they_were_a_key_are_those_of_its_provenance(
    seeds: list[Path], tmp_path: Path
):
    respecify(seeds[0], "(?m)^threads = .*\n", "")
    provenance = seeds[0] / "provenance.json"
    record = json.loads(provenance.read_text())
    provenance.write_text(json.dumps({**record, "torch_threads": 7}))
    comparison = compared(*seeds)
    assert comparison.results[0].last.n == 3
    assert warned(comparison, "learner.threads differs, and so does rounding: 7 for seed 1; 2 for seeds 2, 3")


def test_numbers_of_workers_that_machines_chose_are_not_worth_a_word(tmp_path: Path):
    runs = [
        make_run(
            tmp_path / str(workers),
            [0.0],
            overrides=[f"seed={workers}", f"system.workers={workers}"],
            auto={"system.workers": workers},
        )
        for workers in (1, 2)
    ]
    assert not warned(compared(*runs), "system.workers")


def test_precisions_that_the_specs_say_are_two_groups(tmp_path: Path):
    assert labels_of(tmp_path, [], ["learner.precision=bf16"]) == [
        "pong_trackA precision=fp32", "pong_trackA precision=bf16"
    ]  # fmt: skip


def test_a_precision_that_was_chosen_and_one_that_was_written_are_one_group_where_they_agree(
    seeds: list[Path], tmp_path: Path
):
    comparison = compared(*seeds, make_auto_run(tmp_path / "4", "fp32", 4))
    assert comparison.results[0].last.n == 4
    assert not warned(comparison, "auto")


def test_keys_that_no_spec_leaves_to_the_machine_tell_methods_apart_whatever_a_run_says(tmp_path: Path):
    runs = [
        make_run(
            tmp_path / double,
            [0.0],
            overrides=[f"toggles.double={double}"],
            auto={"toggles.double": double},
        )
        for double in ("false", "true")
    ]
    assert len(compared(*runs).results) == 2


def other_value(value: Scalar) -> Scalar:
    """Return another value of the same type."""
    if isinstance(value, bool | str):
        return f"{value}x" if isinstance(value, str) else not value
    return 1.0 if math.isinf(value) else value + 1


def test_runs_that_differ_in_any_key_that_can_change_results_are_two_groups(tmp_path: Path):
    (run,) = load_runs([make_run(tmp_path / "run", [1.0])])
    others = {
        key: replace(run, values={**run.values, key: other_value(run.values[key])}) for key in run.values
    }
    merged = {key for key, other in others.items() if len(group_runs([run, other])) == 1}
    assert merged == {key for key in others if cannot_change_results(key)} | {
        "seed", "learner.threads", "learner.compile",
    }  # fmt: skip


def test_keys_that_cannot_change_results_are_no_other_group(seeds: list[Path], tmp_path: Path):
    other = make_run(tmp_path / "other", [0.0] * 4, overrides=["seed=4", "system.workers=2"])
    assert only(*seeds, other).last.n == 4


def respecify(run: Path, pattern: str, text: str) -> None:
    """Change the spec of a run as if it had started with another version of this program."""
    spec, provenance = run / "spec.toml", run / "provenance.json"
    before = sha256_of_file(spec)
    spec.write_text(re.sub(pattern, text, spec.read_text()))
    assert before != sha256_of_file(spec)
    provenance.write_text(provenance.read_text().replace(before, sha256_of_file(spec)))


def test_a_run_from_before_a_key_was_added_is_of_the_same_group(seeds: list[Path]):
    respecify(seeds[0], "(?m)^accumulate = .*\n", "")
    assert only(*seeds).last.n == 3


def test_a_key_of_another_version_that_is_not_known_makes_another_group(seeds: list[Path]):
    respecify(seeds[0], "(?m)^accumulate = .*\n", "accumulate = 1\nlookahead = 2\n")
    labels = [result.group.method.label for result in compared(*seeds).results]
    assert labels == ["pong_trackA lookahead=2", "pong_trackA without lookahead"]


def test_a_path_that_is_named_twice_counts_once(seeds: list[Path]):
    assert only(*seeds, seeds[0]).last.n == 3


def test_a_seed_that_was_run_twice_counts_once_and_says_so(seeds: list[Path], tmp_path: Path):
    again = make_run(tmp_path / "again", [0.0, 0.0], overrides=["seed=1"])
    comparison = compared(*seeds, again)
    assert comparison.results[0].last.n == 3
    assert warned(comparison, f"seed 1 was run twice: {seeds[0]} counts, {again} is left out")


def test_copy_of_a_run_counts_once_and_is_called_one(tmp_path: Path):
    run = make_run(tmp_path / "run", [0.0, 2.0])
    copy = shutil.copytree(run, tmp_path / "a copy")
    (copy / "train_log.csv").write_text((run / "train_log.csv").read_text().splitlines(keepends=True)[0])
    text = f"seed 1 is there twice: {run} counts, {copy} is left out; their evaluations are equal"
    assert warned(compared(copy, run), text)


def test_of_two_runs_of_a_seed_the_finished_one_counts_also_if_the_other_has_as_many_frames(tmp_path: Path):
    interrupted = make_run(tmp_path / "interrupted", [0.0, 1.0], finished=False)
    again = make_run(tmp_path / "again", [0.0, 2.0])
    assert only(interrupted, again).last.values == [2.0]


def warned(comparison: Comparison, text: str) -> bool:
    return any(text in warning for warning in comparison.warnings)


def test_frames_that_a_run_has_trained_since_its_last_evaluation_count(tmp_path: Path):
    run = make_run(tmp_path / "run", [-20.0, 5.0], finished=False)
    times = run / "throughput_log.csv"
    last = times.read_text().splitlines()[-1]
    times.write_text(times.read_text() + last.replace(",1000000,", ",1200000,") + "\n")
    found = [only(run, at_frames=frames).last.values for frames in (1_100_000, 1_200_004)]
    assert found == [[5.0], []]


def test_a_run_that_is_not_finished_is_left_out_in_words(seeds: list[Path], tmp_path: Path):
    running = make_run(tmp_path / "running", [-20.0, -10.0], overrides=["seed=4"], finished=False)
    comparison = compared(*seeds, running)
    assert comparison.results[0].last.n == 3
    assert warned(comparison, "seed 4 has no final evaluation yet: 1,000,000 of 50,000,000 frames")


def log(run: Path, *kinds: str) -> Path:
    """Write an event log with these notices."""
    records = ({"kind": kind, "step": 1, "env_frames": 4, "message": "", "data": {}} for kind in kinds)
    (run / "events.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return run


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (["started", "halted"], "was halted at 1,000,000 of 50,000,000 frames, before its final evaluation"),
        (["started", "worker died"], "was halted at 1,000,000 of 50,000,000 frames"),
        (["started", "interrupted"], "was interrupted at 1,000,000 of 50,000,000 frames"),
        (["started", "failed"], "failed at 1,000,000 of 50,000,000 frames"),
        (["started", "halted", "resumed"], "has no final evaluation yet: 1,000,000 of 50,000,000 frames"),
    ],
)
def test_a_run_that_ended_early_is_left_out_with_how_it_ended(tmp_path: Path, kinds: list[str], words: str):
    run = log(make_run(tmp_path / "run", [-20.0, -10.0], finished=False), *kinds)
    assert warned(compared(run), f"seed 1 {words}")


def test_a_run_whose_budget_was_raised_is_not_finished_before_its_new_end(tmp_path: Path):
    run = make_run(tmp_path / "run", [-20.0, -10.0])
    extended = {"kind": "extended", "step": 1, "data": {"total_frames": 9_000_000}}
    interrupted = {"kind": "interrupted", "step": 2, "data": {}}
    (run / "events.jsonl").write_text(f"{json.dumps(extended)}\n{json.dumps(interrupted)}\n")
    assert warned(compared(run), "seed 1 was interrupted at 1,000,000 of 9,000,000 frames")


def test_a_run_that_ended_before_the_requested_frame_is_left_out_with_how_it_ended(tmp_path: Path):
    run = log(make_run(tmp_path / "run", [-20.0], finished=False), "halted")
    words = "seed 1 has 500,000 of 1,000,000 frames: it was halted"
    assert warned(compared(run, at_frames=1_000_000), words)


def test_a_group_with_no_finished_run_says_where_it_can_be_compared(tmp_path: Path):
    running = make_run(tmp_path / "running", [-20.0, -10.0], finished=False)
    comparison = compared(running)
    assert comparison.results[0].last.estimates == {}
    where = "`--at 1_000_000`, in Python `at_frames=1_000_000`,"
    assert warned(comparison, f"no run has a score here; {where} compares what all of its runs have")
    assert compared(running, at_frames=1_000_000).results[0].last.values == [-10.0]


def test_a_group_with_no_finished_run_can_be_compared_where_the_shortest_run_is(tmp_path: Path):
    seeds = [
        make_run(tmp_path / str(seed), [-20.0] * evaluations, overrides=[f"seed={seed}"], finished=False)
        for seed, evaluations in ((1, 3), (2, 1), (3, 2))
    ]
    assert warned(compared(*seeds), "no run has a score here; `--at 500_000`, in Python `at_frames=500_000`,")


def test_a_group_that_was_not_evaluated_yet_is_not_sent_to_a_frame_without_a_score(tmp_path: Path):
    running = make_run(tmp_path / "running", [-20.0, -10.0], finished=False)
    header = (running / "eval_log.csv").read_text().splitlines(keepends=True)[0]
    (running / "eval_log.csv").write_text(header)
    assert not warned(compared(running), "`--at")


@pytest.mark.parametrize(("late_frames", "count"), [(0, 1), (-4, 0)])
def test_at_a_frame_an_evaluation_counts_that_is_one_period_old_and_none_that_is_older(
    tmp_path: Path, late_frames: int, count: int
):
    run = make_run(tmp_path / "run", [1.0, 2.0], period_frames=2 * PERIOD_FRAMES, late_frames=late_frames)
    assert only(run, at_frames=3 * PERIOD_FRAMES).last.n == count


def test_a_light_evaluation_at_the_end_of_the_shortest_run_is_no_score(seeds: list[Path], tmp_path: Path):
    longer = make_run(tmp_path / "longer", [0.0, 1.0, 2.0, 99.0, 3.0], overrides=["seed=4"])
    table = longer / "eval_log.csv"
    table.write_text(table.read_text().replace(",full,", ",light,"))
    comparison = compared(*seeds, longer)
    assert comparison.results[0].last.values == [10.0, 12.0, 20.0]
    assert warned(comparison, "seed 4 has no full evaluation at 2,000,000 frames")


def test_a_run_that_has_not_come_to_the_frame_is_left_out_in_words(seeds: list[Path], tmp_path: Path):
    running = make_run(tmp_path / "running", [-20.0, -10.0], overrides=["seed=4"], finished=False)
    comparison = compared(*seeds, running, at_frames=1_500_000)
    assert (comparison.results[0].last.n, comparison.results[0].best.n) == (3, 3)
    assert warned(comparison, "seed 4 has 1,000,000 of 1,500,000 frames; it is not in the scores")


def test_finished_runs_of_unequal_length_are_compared_at_the_shortest(seeds: list[Path], tmp_path: Path):
    longer = make_run(tmp_path / "longer", [0.0, 1.0, 2.0, 3.0, 99.0], overrides=["seed=4"])
    comparison = compared(*seeds, longer)
    assert comparison.results[0].last.values == [10.0, 12.0, 20.0, 3.0]
    assert warned(comparison, "finished runs are of unequal length (2,000,000, 2,500,000 frames)")


@pytest.fixture
def envs(tmp_path: Path) -> list[Path]:
    """Three seeds with eight environments, whose evaluations are a few frames apart."""
    late = {1: 12, 2: 0, 3: 28}
    return [
        make_run(
            tmp_path / str(seed),
            [-20.0, seed],
            overrides=[f"seed={seed}", "env.num_envs=8"],
            late_frames=frames,
        )
        for seed, frames in late.items()
    ]


def test_seeds_of_several_environments_that_end_a_few_frames_apart_are_compared(envs: list[Path]):
    comparison = compared(*envs)
    assert comparison.results[0].last.values == [1.0, 2.0, 3.0]
    assert not warned(comparison, "of unequal length")


def test_an_evaluation_due_at_a_frame_counts_there_though_it_came_a_few_frames_later(envs: list[Path]):
    assert only(*envs, at_frames=500_000).last.values == [-20.0, -20.0, -20.0]


def test_score_of_seeds_that_end_a_few_frames_apart_is_one_at_the_earliest_of_them(envs: list[Path]):
    assert only(*envs).last.env_frames == 1_000_000


def test_an_evaluation_a_whole_iteration_later_does_not_count(envs: list[Path], tmp_path: Path):
    later = make_run(tmp_path / "4", [-20.0, 4.0], overrides=["seed=4", "env.num_envs=8"], late_frames=32)
    assert only(*envs, later, at_frames=500_000).last.n == 3


@pytest.mark.parametrize(("late_frames", "count"), [(396, 2), (400, 1)])
def test_runs_with_actors_may_end_less_than_a_message_apart(tmp_path: Path, late_frames: int, count: int):
    actors = [
        "env.num_envs=8", "actors.mode=free_running", "actors.processes=2", "actors.fragment_steps=25",
        "actors.error_buffer_steps=200", "system.actors_per_core=2",
    ]  # fmt: skip
    runs = [
        make_run(tmp_path / str(seed), [seed], overrides=[f"seed={seed}", *actors], late_frames=late)
        for seed, late in ((1, 0), (2, late_frames))
    ]
    assert compared(*runs).results[0].last.n == count


def test_a_score_that_is_not_a_number_is_left_out_in_words(seeds: list[Path], tmp_path: Path):
    broken = make_run(tmp_path / "nan", [0.0, 0.0, 0.0, NAN], overrides=["seed=4"])
    comparison = compared(*seeds, broken)
    assert comparison.results[0].last.values == [10.0, 12.0, 20.0]
    assert warned(
        comparison, "seed 4 has a score at 2,000,000 frames that is not a number; it is not in the scores"
    )


def test_a_seed_that_other_groups_have_is_missed(seeds: list[Path], tmp_path: Path):
    double = make_run(tmp_path / "double", [0.0], overrides=["seed=1", "toggles.double=true"])
    assert warned(
        compared(*seeds, double), "pong pong_trackA double=true: without seeds 2, 3, which other groups have"
    )


def test_a_row_that_was_cut_off_is_left_out_in_words(seeds: list[Path]):
    table = seeds[0] / "eval_log.csv"
    table.write_bytes(table.read_bytes()[:-20])
    comparison = compared(*seeds)
    assert comparison.results[0].last.n == 2
    assert warned(comparison, "seed 1: the last row of eval_log.csv is cut off and left out")


def test_a_table_cut_within_its_header_is_damaged(seeds: list[Path]):
    (seeds[0] / "eval_log.csv").write_bytes(b"step,env_fra")
    with pytest.raises(DamagedError, match=r"eval_log.csv: no column env_frames"):
        compared(*seeds)


@pytest.mark.parametrize("name", ["eval_log", "update_log", "throughput_log"])
def test_a_missing_table_is_damage(seeds: list[Path], name: str):
    (seeds[0] / f"{name}.csv").unlink()
    with pytest.raises(DamagedError, match=f"{name}.csv: is missing"):
        compared(*seeds)


def test_a_missing_column_is_damage(seeds: list[Path]):
    table = seeds[0] / "eval_log.csv"
    table.write_text(table.read_text().replace("mean_return", "mean", 1))
    with pytest.raises(DamagedError, match="no column mean_return"):
        compared(*seeds)


def test_a_word_among_numbers_is_damage(seeds: list[Path]):
    table = seeds[0] / "eval_log.csv"
    table.write_text(table.read_text().replace("-20.0", "many", 1))
    with pytest.raises(DamagedError, match=r"eval_log.csv: cannot be read as a table"):
        compared(*seeds)


def test_a_directory_that_is_no_run_is_the_user_s_mistake(tmp_path: Path):
    with pytest.raises(UserError, match="is not a run directory"):
        compared(tmp_path)


def test_frames_and_hours_to_a_score_are_medians_over_seeds(seeds: list[Path]):
    time_to_score = only(*seeds, to_score=15.0).time_to_score
    assert (
        time_to_score.reached,
        time_to_score.runs,
        time_to_score.median_frames,
        time_to_score.median_hours,
    ) == (3, 3, 1_500_000, 3.0)


def test_median_time_of_two_seeds_is_halfway_between_theirs(seeds: list[Path], tmp_path: Path):
    slow = make_run(tmp_path / "slow", [-20.0, -5.0, 0.0, 15.0], overrides=["seed=4"])
    time_to_score = only(seeds[0], slow, to_score=15.0).time_to_score
    assert (time_to_score.median_frames, time_to_score.median_hours) == (1_750_000, 3.5)


def test_a_seed_that_never_comes_to_a_score_counts_as_never(seeds: list[Path]):
    time_to_score = only(*seeds, to_score=16.0).time_to_score
    assert (time_to_score.reached, time_to_score.median_frames) == (1, math.inf)


def test_a_score_that_comes_after_the_requested_frame_is_not_reached_there(seeds: list[Path]):
    reached = [
        only(*seeds, to_score=15.0, at_frames=frames).time_to_score.reached
        for frames in (1_000_000, 1_500_000)
    ]
    assert reached == [0, 3]


def test_a_score_at_the_requested_frame_is_reached_there_unless_it_came_a_whole_iteration_later(
    tmp_path: Path,
):
    runs = [
        make_run(tmp_path / str(late), [-20.0, 15.0], overrides=["env.num_envs=8"], late_frames=late)
        for late in (28, 32)
    ]
    times = [only(run, to_score=15.0, at_frames=1_000_000).time_to_score for run in runs]
    assert [each.reached for each in times] == [1, 0]


def test_a_person_s_score_is_counted_to_where_none_is_asked_for(seeds: list[Path]):
    assert only(*seeds).time_to_score.score == 14.6


def test_fewer_than_three_seeds_are_warned_of(seeds: list[Path]):
    assert warned(compared(*seeds[:2]), "n = 2: fewer than 3 seeds")
    assert not warned(compared(*seeds), "fewer than 3 seeds")


def test_a_run_that_deviates_from_its_track_is_marked(tmp_path: Path):
    run = make_run(tmp_path / "run", [0.0], overrides=["learner.batch_size=64"])
    assert warned(compared(run), "marked A*: deviates in learner.batch_size")


def test_tracks_in_one_table_are_warned_of(seeds: list[Path], tmp_path: Path):
    other = make_run(tmp_path / "b", [0.0], spec="pong_trackB.toml")
    comparison = compared(*seeds, other)
    assert warned(comparison, "tracks A and B are in one table")
    assert warned(comparison, "sticky_probability 0.0 | 0.25")


def test_scores_after_different_numbers_of_frames_in_one_table_are_warned_of(
    seeds: list[Path], tmp_path: Path
):
    longer = make_run(tmp_path / "longer", [0.0] * 8, overrides=["toggles.double=true"])
    warning = "pong: scores after different numbers of frames are in one table (2,000,000 | 4,000,000)"
    assert warned(compared(*seeds, longer), warning)
    assert not warned(compared(*seeds, longer, at_frames=2_000_000), "different numbers of frames")


def test_protocols_in_one_table_are_warned_of_field_by_field(seeds: list[Path], tmp_path: Path):
    other = make_run(tmp_path / "other", [0.0] * 4, overrides=["seed=4"], ale_version="0.13")
    assert warned(compared(*seeds, other), "different protocols are in one table (ale_version 0.12.1 | 0.13)")


def test_versions_in_one_group_are_warned_of(seeds: list[Path], tmp_path: Path):
    other = make_run(tmp_path / "other", [0.0] * 4, overrides=["seed=4"], versions={"torch": "2.11.0"})
    words = "runs were made by different versions (atari_dqn 0.1.0 | unknown, torch 2.11.0 | 2.13.0)"
    assert warned(compared(*seeds, other), words)


def test_published_figures_of_the_same_protocol_give_a_verdict(seeds: list[Path]):
    (published,) = only(*seeds).references
    assert (published.reference.study.name, published.reference.agent) == ("nnabla_dqn", "dqn")
    assert (published.verdict, published.score) == ("above", 14.0)


def test_published_figures_give_a_verdict_if_one_seed_went_on_for_longer(tmp_path: Path):
    runs = [make_run(tmp_path / str(n), [0.0] * n, overrides=[f"seed={n}"]) for n in (4, 6)]
    assert [each.verdict for each in only(*runs).references] == ["above"]


def test_published_figures_of_another_protocol_give_none(tmp_path: Path):
    capped = make_run(tmp_path / "run", [0.0] * 4, frame_caps=1)
    assert {each.verdict for each in only(capped).references} == {""}
    assert only(capped).references[0].reference.differences == ("cap 400,000",)


@pytest.mark.parametrize(("first", "compared_with_best"), [(0.0, True), (NAN, False)])
def test_best_of_fewer_seeds_than_have_a_last_score_is_compared_with_no_published_best(
    tmp_path: Path, first: float, compared_with_best: bool
):
    runs = [
        make_run(tmp_path / str(n), [score, 0.0], overrides=[f"seed={n}"], period_frames=100_000_000)
        for n, score in ((1, 0.0), (2, first))
    ]
    result = only(*runs)
    assert (result.last.n, result.best.n) == (2, 2 if compared_with_best else 1)
    assert any(each.reference.study.weights == "best" for each in result.references) is compared_with_best


def test_training_returns_are_compared_with_published_training_returns(tmp_path: Path):
    run = make_run(
        tmp_path / "run",
        [0.0] * 4,
        spec="ablations/pong_1_vanilla.toml",
        period_frames=1_250_000,
        training_return=-12.0,
    )
    found = {each.reference.study.name: each for each in only(run).references}
    assert (found["dopamine_jax"].measure, found["dopamine_jax"].score) == ("training", -12.0)
    assert found["dopamine_jax"].verdict == "on track"


def test_aggregate_is_human_normalised_over_the_games_all_methods_have(seeds: list[Path], tmp_path: Path):
    breakout = make_run(tmp_path / "b", [30.5], spec="breakout_trackA.toml")
    comparison = compared(*seeds[:1], breakout)
    (aggregate,) = comparison.aggregates
    assert aggregate.games == ("pong", "breakout")
    assert aggregate.estimates["mean"].value == pytest.approx(((10 + 20.7) / 35.3 + 1.0) / 2)
    assert aggregate.estimates["optimality_gap"].value == pytest.approx((1 - 30.7 / 35.3) / 2)


def test_games_that_one_method_lacks_are_left_out_of_the_aggregate_in_words(
    seeds: list[Path], tmp_path: Path
):
    breakout = make_run(tmp_path / "b", [30.5], spec="breakout_trackA.toml")
    double = make_run(tmp_path / "double", [0.0], overrides=["toggles.double=true"])
    comparison = compared(*seeds, breakout, double)
    assert {aggregate.games for aggregate in comparison.aggregates} == {("pong",)}
    assert warned(comparison, "human-normalised: without breakout")


def test_probability_of_improvement_is_over_the_first_method(seeds: list[Path], tmp_path: Path):
    double = make_run(tmp_path / "double", [0.0, 0.0, 0.0, 11.0], overrides=["toggles.double=true"])
    (improvement,) = compared(*seeds, double).improvements
    assert improvement.probability.value == pytest.approx(1 / 3)
    assert improvement.over.label == "pong_trackA double=false"


def test_an_empty_cell_where_a_number_must_be_is_damage(seeds: list[Path]):
    table = seeds[0] / "eval_log.csv"
    table.write_text(table.read_text().replace(",30,", ",,", 1))
    with pytest.raises(DamagedError, match=r"eval_log.csv: cells of episodes are empty"):
        compared(*seeds)


def test_rows_out_of_order_are_damage(seeds: list[Path]):
    table = seeds[0] / "eval_log.csv"
    header, *rows = table.read_text().splitlines(keepends=True)
    table.write_text("".join([header, *reversed(rows)]))
    with pytest.raises(DamagedError, match="not sorted by env_frames"):
        compared(*seeds)


def test_tables_of_other_versions_with_other_columns_are_read_too(seeds: list[Path]):
    table = seeds[0] / "eval_log.csv"
    lines = table.read_text().splitlines()
    table.write_text("".join(f"{word},{line}\n" for word, line in zip(["new", *"1234"], lines, strict=True)))
    assert only(*seeds).last.values == [10.0, 12.0, 20.0]


def test_a_full_evaluation_without_a_number_leaves_its_seed_out_of_the_best_in_words(tmp_path: Path):
    run = make_run(tmp_path / "run", [0.0, NAN, 2.0])
    comparison = compared(run)
    assert (comparison.results[0].last.n, comparison.results[0].best.n) == (1, 0)
    assert warned(
        comparison, "seed 1 has 1 of 3 full evaluations that are not a number; it is not in the best"
    )


def test_a_run_that_has_just_begun_has_no_score(tmp_path: Path):
    comparison = compared(make_run(tmp_path / "run", [], finished=False))
    assert comparison.results[0].last.n == 0
    assert warned(comparison, "seed 1 has no final evaluation yet: 0 of 50,000,000 frames")


def test_a_path_may_hold_what_a_shell_would_expand(tmp_path: Path):
    assert only(make_run(tmp_path / "run[1] a*b?", [3.0])).last.values == [3.0]


@pytest.fixture(scope="module")
def catch(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two seeds of a real run, from its start to its end."""
    root = tmp_path_factory.mktemp("catch")
    for seed in (1, 2):
        run(root / str(seed), f"seed={seed}", "training.total_frames=320")
    return [root / "1", root / "2"]


def test_real_runs_are_one_group_with_the_scores_of_their_summaries(catch: list[Path]):
    scores = [json.loads((path / "summary.json").read_text()) for path in catch]
    result = only(*catch)
    assert result.last.values == [score["last"]["mean_return"] for score in scores]
    assert result.best.values == [score["best"]["mean_return"] for score in scores]
    assert result.last.protocol_digests == [scores[0]["protocol_digest"]]


def test_an_unpublished_game_has_no_reference_and_no_human_score(catch: list[Path]):
    comparison = compared(*catch)
    assert (comparison.results[0].references, comparison.results[0].time_to_score, comparison.aggregates) == (
        (),
        None,
        (),
    )
