"""The page of DER's importance weights: the seeds that both forms have, and what its tables make."""

import sys
from pathlib import Path

import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[1] / "docs/results"))
from keep_der_weights import KEPT, PAGE, RESULTS, Form, answer, forms_of, means, page, table

RUNS = pl.DataFrame(
    {
        "run": ["a", "b", "c", "d", "e"],
        "game": ["road_runner"] * 4 + ["pong"],
        "seed": [2, 3, 2, 4, 2],
        "weights": ["replay", "replay", "minibatch", "minibatch", "replay"],
        "mean_weight": [0.05, 0.15, 0.5, 0.7, 0.1],
    }
)
EVALUATIONS = pl.DataFrame(
    {
        "run": ["a", "b", "c", "d", "e"],
        "eval_type": ["final"] * 5,
        "mean_return": [1_000.0, 2_000.0, 9_000.0, 8_000.0, -20.0],
        "frame_caps": [0, 0, 14, 0, 0],
    }
)


def test_only_seeds_of_both_forms_are_compared() -> None:
    found = forms_of(RUNS, EVALUATIONS)
    assert list(found) == ["road_runner"]
    assert {form: each.scores for form, each in found["road_runner"].items()} == {
        "replay": (1_000.0,),
        "minibatch": (9_000.0,),
    }


def test_row_has_the_mean_weight_of_its_seeds() -> None:
    rows = list(table(forms_of(RUNS, EVALUATIONS)))
    assert rows[2:] == [
        "| road_runner | of the replay | 1,000 | 1,000 | 0.05 |",
        "| road_runner | of the minibatch | 9,000 † | 9,000 | 0.50 |",
    ]


def test_difference_is_the_minibatchs_less_the_replays() -> None:
    forms = forms_of(RUNS, EVALUATIONS)["road_runner"]
    assert "the minibatch's less the replay's 8,000; published 9,600" in means("road_runner", forms)


@pytest.mark.parametrize(
    ("minibatch", "said"), [((11.0, 12.0), "pong"), ((1.0, 20.0), "neither game")], ids=["apart", "wide"]
)
def test_answer_names_the_games_with_a_difference(minibatch: tuple[float, ...], said: str) -> None:
    scores = {"replay": (1.0, 2.0), "minibatch": minibatch}
    forms = {
        form: Form(seeds=(1, 2), scores=each, frame_caps=(0, 0), mean_weight=0.5)
        for form, each in scores.items()
    }
    assert answer({"pong": forms}) == f"**A difference is shown on {said}.**"


@pytest.mark.skipif(not (RESULTS / KEPT / "runs.csv").exists(), reason="no run is kept yet")
def test_page_is_what_the_tables_make() -> None:
    tables = [pl.read_csv(RESULTS / KEPT / f"{name}.csv") for name in ("runs", "evaluations")]
    assert (RESULTS / PAGE).read_text(encoding="utf-8") == page(*tables)
