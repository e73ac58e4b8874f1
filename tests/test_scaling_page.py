"""Figures of the page on actors are those of the tables and files that it names."""

from statistics import fmean
from typing import Any

import polars as pl
import pytest
from evidence import RESULTS, cells, disagreements, kept, text_of

from atari_dqn.compare.statistics import column, difference

PAGE = "scaling.md"


def actor_scores(agent: str) -> list[float]:
    rows = pl.read_csv(RESULTS / "actors_catch/evaluations.csv").filter(
        pl.col("eval_type") == "final", pl.col("run").str.starts_with(agent)
    )
    return rows["mean_return"].to_list()


@pytest.mark.parametrize(
    ("left", "right", "sentence"),
    [
        ("free_running", "one_process", "score {} more than those without actors"),
        ("free_running", "lockstep", "{} more than those in lockstep"),
        ("lockstep", "one_process", "no actors by {}."),
    ],
)
def test_difference_of_actors_is_that_of_their_evaluations(left: str, right: str, sentence: str) -> None:
    found = difference(column(actor_scores(left)), column(actor_scores(right)))
    assert found.interval
    text = f"{found.value:.2f} [{found.interval.low:.2f}, {found.interval.high:.2f}]"
    assert sentence.format(text.replace("-", "−")) in text_of(PAGE)


@pytest.mark.parametrize(
    ("agent", "label"),
    [("free_running", "free-running"), ("lockstep", "lockstep"), ("one_process", "without actors")],
)
def test_score_of_actors_is_that_of_their_evaluations(agent: str, label: str) -> None:
    (row,) = pl.read_csv(RESULTS / "actors_catch.csv").filter(pl.col("label") == agent).rows(named=True)
    expected = [fmean(actor_scores(agent)), row["mean_low"], row["mean_high"]]
    last_network = cells(PAGE, "## What it costs in score", label).rpartition("]")[0]
    assert disagreements(last_network, expected) == []


@pytest.mark.parametrize(
    ("run", "label"),
    [
        ("one_process", "in one process, with a worker that emulates"),
        ("free_running", "with eight free-running actors"),
    ],
)
def test_scores_of_a_million_frames_with_actors_are_those_of_their_tables(run: str, label: str) -> None:
    evaluations = pl.read_csv(RESULTS / "actors_pong/evaluations.csv").filter(pl.col("run") == run)
    last = evaluations.filter(pl.col("eval_type") == "final")["mean_return"].item()
    games = pl.read_csv(RESULTS / "actors_pong/curves.csv")[run][-1]
    scores = cells(PAGE, "| | frames/s including evaluations |", label).split("|", maxsplit=2)[2]
    assert disagreements(scores, [last, games]) == []


RECEIVED = [*kept("receiving")["paced"], *kept("receiving")["flooded"]]


@pytest.mark.parametrize("row", RECEIVED, ids=lambda row: f"{row['actors']} actors")
def test_speed_of_receiving_is_that_of_its_file(row: dict[str, Any]) -> None:
    speed = "139 frames/s each" if row["offered_transitions_per_second"] else "as quickly as they can"
    label = f"{row['actors']}, {speed} | {'compressed' if row['compressed'] else 'plain'}"
    expected = [row["transitions_per_second"], 100 * row["core_share"], row["transitions_per_core_second"]]
    assert disagreements(cells(PAGE, "transitions per second of a core |", label), expected) == []


FLOWS = {"16": kept("flow_of_actors"), "64": kept("flow_of_actors_fewer_updates")}


@pytest.mark.parametrize(
    ("steps", "row"),
    [(steps, row) for steps, found in FLOWS.items() for row in found["compared"]],
    ids=lambda value: value if isinstance(value, str) else str(value["actors"]),
)
def test_flow_of_actors_is_that_of_its_file(steps: str, row: dict[str, Any]) -> None:
    predicted, measured = row["predicted"], row["measured"]
    found = cells(PAGE, "| steps for each update |", f"{steps} | {row['actors']} | {predicted['bound']}")
    expected = [predicted["frames_per_second"], measured["frames_per_second"], abs(100 * row["off"])]
    expected += [predicted["lag_updates"], measured["lag_updates"]]
    assert disagreements(found, expected) == []


def test_kills_of_actors_and_learners_are_those_of_their_file() -> None:
    found = kept("actor_kills")
    before, during, after = found["actors"]["ratios"].values()
    assert (found["kills"], found["problems"], found["learners"]["orphans"]) == (40, [], 0)
    assert (
        f"was {before:.3f} of the declared one before, {during:.3f} during and {after:.3f} after the kills; "
        f"{found['actors']['dropped_steps']} steps were counted as dropped"
    ) in text_of(PAGE)
