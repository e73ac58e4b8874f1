"""The page of the ladder: increments and their signs, and what its tables make."""

import sys
from pathlib import Path

import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[1] / "docs/results"))
from gather import processors
from keep_ladder import (
    KEPT,
    PAGE,
    RESULTS,
    Step,
    false_finds,
    method_of,
    page,
    steps_of,
    summary,
    table,
)

SCORES = {
    "1_dqn": [-20.0, -19.0, -21.0],
    "2_double": [-19.5, -20.5, -20.0],
    "3_prioritized": [10.0, 12.0, 11.0],
    "4_dueling": [5.0, 4.0, 6.0],
}

PROTOCOLS = {"4_dueling": "b"}
"""Fingerprints of the methods that are evaluated under another protocol than the others."""


def ladder(seeds: int, scores_of: dict[str, list[float]] = SCORES) -> list[Step]:
    rows = [
        (f"{method}_pong_seed{seed + 1}", "pong", method, seed + 1, scores[seed])
        for method, scores in scores_of.items()
        for seed in range(seeds)
    ]
    runs = pl.DataFrame([row[:4] for row in rows], schema=["run", "game", "method", "seed"], orient="row")
    evaluations = pl.DataFrame(
        {
            "run": [row[0] for row in rows] * 2,
            "eval_type": ["light"] * len(rows) + ["final"] * len(rows),
            "mean_return": [0.0] * len(rows) + [row[4] for row in rows],
            "protocol": [PROTOCOLS.get(row[2], "a") for row in rows] * 2,
        }
    )
    return steps_of(runs, evaluations)["pong"]


def test_increment_is_the_difference_of_the_means_of_final_scores() -> None:
    increments = [step.increment.value for step in ladder(3) if step.increment]
    assert increments == pytest.approx([0.0, 31.0, -6.0])


def test_sign_is_that_of_an_interval_on_one_side_of_zero() -> None:
    assert [step.sign for step in ladder(3)] == ["", "nothing", "better", "worse"]


def test_increment_over_a_step_of_another_protocol_is_marked() -> None:
    marked = [line.endswith("‡ |") for line in table("pong", ladder(3)).splitlines()[2:]]
    assert marked == [False, False, False, True]


def test_step_of_one_seed_has_no_interval_and_no_sign() -> None:
    steps = ladder(1)
    assert "| + Double | −19.5 | −19.5 | +0.5 [–] |" in table("pong", steps)
    assert summary("pong", steps).startswith("**pong:** no interval yet.")


def test_steps_end_before_one_that_was_not_trained() -> None:
    assert [step.method for step in ladder(3)] == list(SCORES)


def test_step_after_one_without_a_run_is_shown_without_an_increment() -> None:
    rest = {method: scores for method, scores in SCORES.items() if method != "3_prioritized"}
    steps = ladder(3, rest)
    assert [step.method for step in steps] == list(rest)
    assert [step.increment is None for step in steps] == [True, False, True]


def test_summary_names_the_steps_without_a_run() -> None:
    assert summary("pong", ladder(3)).endswith(
        " No finished run: + 5-step returns, + C51, + noisy layers instead of ε."
    )


def test_share_of_false_finds_is_that_of_one_or_more_of_all_intervals() -> None:
    # 1 − 0.975^12 and 1 − 0.95^12
    assert false_finds(12) == "26 to 46 %"


def test_processors_of_several_kinds_are_named_with_their_runs() -> None:
    runs = pl.DataFrame({"cpu_model": ["EPYC"] * 3, "cpu_flags": ["avx2", "avx2 avx512f", "avx2"]})
    assert processors(runs) == "EPYC (avx2, 2 runs) and EPYC (avx512f, 1 runs)"
    assert processors(runs.head(1)) == "EPYC (avx2)"


def test_a_seed_counts_once_though_its_run_was_continued() -> None:
    runs = pl.DataFrame({"run": ["a"], "game": ["pong"], "method": ["1_dqn"], "seed": [1]})
    evaluations = pl.DataFrame(
        {"run": ["a"] * 2, "eval_type": ["final"] * 2, "mean_return": [1.0, 2.0], "protocol": ["a"] * 2}
    )
    assert [step.scores for step in steps_of(runs, evaluations)["pong"]] == [(1.0,)]


def test_run_of_a_sweep_with_the_same_names_is_refused(tmp_path: Path) -> None:
    run = tmp_path / "1_dqn_pong_seed1"
    run.mkdir()
    (run / "spec.toml").write_text("[training]\ntotal_frames = 3_000_000\n")
    with pytest.raises(SystemExit, match="expected a run of ladder_quick"):
        method_of(run)


def test_run_of_another_sweep_is_refused() -> None:
    with pytest.raises(SystemExit, match="expected a run of ladder_quick"):
        method_of(Path("atari100k_der_pong_seed1"))


@pytest.mark.skipif(not (RESULTS / KEPT / "runs.csv").exists(), reason="no run of the ladder is kept yet")
def test_page_is_what_the_tables_make() -> None:
    tables = [pl.read_csv(RESULTS / KEPT / f"{name}.csv") for name in ("runs", "evaluations")]
    assert (RESULTS / PAGE).read_text(encoding="utf-8") == page(steps_of(*tables), tables[0])
