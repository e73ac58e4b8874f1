"""Figures of the page on GPUs are those of gpu.json and of the run that it names."""

import re
from typing import Any

import polars as pl
import pytest
from evidence import RESULTS, cells, disagreements, kept, text_of

PAGE = "gpu.md"
UPDATES = "| an update, 16 in a row, µs |"
TRAINING = "| training, emulator frames/s |"


@pytest.fixture(scope="module")
def gpu() -> dict[str, Any]:
    return dict(kept("gpu"))


@pytest.mark.parametrize(
    ("update", "label"),
    [
        ("uniform, fp32", "Track A, batch 32, fp32"),
        ("prioritized, fp32", "Track A with prioritized replay, fp32"),
        ("Track B, bf16", "Track B, batch 32, bf16"),
    ],
)
def test_update_takes_the_time_of_its_file(gpu: dict[str, Any], update: str, label: str) -> None:
    found = gpu["updates"][update]
    expected = [found[what] for what in ("together_us", "without_graphs_us", "kernels")]
    assert disagreements(cells(PAGE, UPDATES, label), expected) == []


def test_compiled_updates_take_the_time_of_their_file(gpu: dict[str, Any]) -> None:
    plain, compiled = gpu["updates"]["uniform, bf16"], gpu["compiled"]
    expected = [plain[what] for what in ("together_us", "without_graphs_us", "kernels")]
    expected.insert(1, compiled["uniform, bf16"]["together_us"])
    assert disagreements(cells(PAGE, UPDATES, "Track A, batch 32, bf16"), expected) == []
    btr = compiled["BTR, batch 256, bf16"]
    row = cells(PAGE, UPDATES, "BTR, batch 256, bf16")
    assert disagreements(row, [btr["together_us"], btr["kernels"]]) == []


@pytest.mark.parametrize(
    ("label", "runs"),
    [
        ("Track A, 64 environments, bf16 · fp32", ["A, 64 environments, bf16", "A, 64 environments, fp32"]),
        ("Track A, 1 environment, fp32", ["A, 1 environment, fp32"]),
        ("Track B, 64 environments, bf16", ["B, 64 environments, bf16"]),
        ("BTR, bf16, compiled · not compiled", ["BTR, bf16, compiled", "BTR, bf16"]),
        ("R2D2, 64 environments, bf16", ["R2D2, 64 environments, bf16"]),
        ("PQN, 128 environments", ["PQN"]),
        ("BBF at a replay ratio of 2", ["BBF at a replay ratio of 2"]),
    ],
)
def test_training_makes_the_frames_of_its_file(gpu: dict[str, Any], label: str, runs: list[str]) -> None:
    measured = {**gpu["frames"], **gpu["agents"]}
    first_cell = cells(PAGE, TRAINING, label).split("|")[0]
    expected = [measured[run]["frames_per_second"] for run in runs]
    if runs == ["BBF at a replay ratio of 2"]:
        expected += [400_000 / expected[0] / 3600, 400_000]
    assert disagreements(first_cell, expected) == []


@pytest.mark.parametrize(
    ("run", "label"),
    [
        ("A, 1 environment, fp32", "Track A, 1 environment, fp32"),
        ("R2D2, 64 environments, bf16", "R2D2, 64 environments, bf16"),
    ],
)
def test_share_of_what_limits_training_is_that_of_its_file(gpu: dict[str, Any], run: str, label: str) -> None:
    shares = {**gpu["frames"], **gpu["agents"]}[run]["shares"]
    other = "store" if run.startswith("A") else "act"
    limit = cells(PAGE, TRAINING, label).split("|")[1]
    assert disagreements(limit, [100 * shares["emulate"], 100 * shares[other]]) == []


def test_as_many_aims_are_missed_as_the_page_says(gpu: dict[str, Any]) -> None:
    times = {"uniform, fp32", "prioritized, fp32", "seconds to 18"}  # to stay below; the others to reach
    measured = {name: aim for name, aim in gpu["targets"].items() if aim["found"] is not None}
    missed = [name for name, aim in measured.items() if (aim["found"] <= aim["aim"]) != (name in times)]
    assert (len(missed), len(gpu["targets"])) == (5, 9)
    assert "**Five of the nine aims in `gpu.json` are not reached**" in text_of(PAGE)


def test_scores_of_pong_quick_are_those_of_their_file(gpu: dict[str, Any]) -> None:
    pong = gpu["pong"]
    sentence = text_of(PAGE).partition("from the command to its evaluations: ")[2].partition(" seconds")[0]
    scores = [figure for frames, score in pong["evaluations"] for figure in (score, round(frames, -5))]
    scores[-1] /= 1_000_000  # 1.2 million
    assert disagreements(sentence, [*scores, pong["seconds"]]) == []


def test_kernels_are_as_many_and_as_short_as_the_page_says(gpu: dict[str, Any]) -> None:
    kernels = [each["kernels"] for each in gpu["updates"].values()]
    means = [each["busy_us"] / each["kernels"] for each in gpu["updates"].values()]
    lengths = f"{min(means):.1f} to {max(means):.1f} µs"
    text = f"is {min(kernels)} to {max(kernels)} short CUDA kernels in sequence, {lengths}"
    assert text in text_of(PAGE)


def test_emulators_are_busy_as_long_as_the_page_says(gpu: dict[str, Any]) -> None:
    found = {**gpu["frames"], **gpu["agents"]}
    many = [run for run in found if "1 environment" not in run and not run.startswith("BBF")]
    shares = [100 * found[run]["emulators_busy_share"] for run in many]
    assert f"emulators are busy for {min(shares):.0f} to {max(shares):.0f} % of the time" in text_of(PAGE)


def test_scores_of_btr_are_those_of_its_evaluations() -> None:
    scores = pl.read_csv(RESULTS / "gpu_btr_pong/eval_log.csv")["mean_return"]
    first, second = (f"−{-score:.2f}" for score in scores)
    assert f"scored {first} after one million frames and {second} after two" in text_of(PAGE)


def test_tests_that_passed_on_the_gpu_are_those_of_its_file(gpu: dict[str, Any]) -> None:
    (line,) = gpu["tests"]
    passed = re.search(r"(\d+) passed", line)
    assert passed
    assert f"after the run that `gpu.json` has, with {passed[1]}." in text_of(PAGE)
