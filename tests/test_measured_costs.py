"""Figures of smaller measurements are those of their files: emulation, start, memory, updates, precisions."""

import re
from dataclasses import asdict
from statistics import fmean, median, stdev

import pytest
from evidence import cells, disagreements, kept, text_of

from atari_dqn.compare.statistics import column, difference

SPEED, ALGORITHMS = "results/speed.md", "algorithms.md"
WAYS = ("limited", "passive", "spinning")


@pytest.mark.parametrize(
    ("label", "machine"), [("alone", "quiet"), ("next to one program that never waits", "busy")]
)
def test_speeds_by_how_threads_wait_are_those_of_their_file(label: str, machine: str) -> None:
    found = kept("busy")["median_frames_per_second"]
    expected = [found[f"{machine}, {way}"] for way in WAYS]
    assert disagreements(cells(SPEED, "## How threads wait", label), expected) == []


def test_ratios_by_how_threads_wait_are_those_of_their_file() -> None:
    found = kept("busy")["median_busy_over_quiet"]
    row = cells(SPEED, "## How threads wait", "the second over the first, median of rounds")
    assert disagreements(row, [found[way] for way in WAYS]) == []


@pytest.mark.parametrize(
    ("file", "machine"),
    [
        ("emulation", "2-core AMD EPYC, nothing else running, 2026-11-23"),
        ("emulation_avx512_epyc", "another 2-core AMD EPYC, shared, 2026-11-26"),
        ("emulation_xeon", "2-core Intel Xeon, before all other work (`chrt -r 10`), 2026-11-22"),
    ],
)
def test_emulation_on_a_machine_is_that_of_its_file(file: str, machine: str) -> None:
    found, of_processor = kept(file)["per_second"], kept(file)["per_cpu_second"]
    expected = [
        found["medians"]["ours"],
        found["median_ratio_of_ours_to"]["bare_all_at_once"],
        of_processor["median_ratio_of_ours_to"]["bare_all_at_once"],
        found["median_ratio_of_ours_to"]["atari_vector_env"],
        found["medians"]["atari_vector_env"],
    ]
    label = f"{machine} ([{file}.json]({file}.json))"
    assert disagreements(cells(SPEED, "## Emulation and preprocessing alone", label), expected) == []


def test_speeds_of_more_environments_are_those_of_their_file() -> None:
    expected = [each["frames_per_second"] for each in kept("num_envs")["lanes"].values()]
    assert disagreements(cells(SPEED, "## More environments in one run", "frames/s"), expected) == []


def test_time_of_drawing_priorities_is_that_of_its_file() -> None:
    (one_thread,) = (each for each in kept("prioritized")["results"] if each["threads"] == 1)
    expected = [each["together_ms"] for each in one_thread["medians"].values()]
    assert (
        disagreements(cells(SPEED, "before there were kernels: [prioritized.json]", "milliseconds"), expected)
        == []
    )
    assert f"Ours was {one_thread['share_of_update']:.1%} of a Track B".replace("%", " %") in text_of(SPEED)


def test_cost_of_memory_is_that_of_its_file() -> None:
    found = kept("memory_cost")
    sampling, update = found["sampling"], found["update"]
    ratios = [each["ours"] / each["plain"] for each in update["rounds_seconds"]]
    milliseconds = 1000 * median(sampling["sampling_seconds"])
    share = f"{100 * sampling['sampling_share_of_update']:.1f} %"
    text = text_of(SPEED)
    assert f"{share} ({milliseconds:.0f} ms of {fmean(sampling['update_seconds']):.1f} s)" in text
    assert f"{median(ratios):.2f}, median of seven; {min(ratios):.2f} to {max(ratios):.2f}" in text
    assert f"| {found['bytes']['predicted_over_resident']:.2f} |" in text
    assert f"| {found['bytes']['predicted_bytes_of_4_million'] / 1e9:.1f} GB |" in text


@pytest.mark.parametrize(
    ("label", "parts"),
    [
        ("interpreter, packages of the command line, spec", ["interpreter and spec"]),
        ("importing torch", ["torch"]),
        ("other imports, checks", ["other imports", "hardware and checks"]),
        ("run directory, with the state of the checkout", ["run directory"]),
        ("first update", ["first update"]),
    ],
)
def test_part_of_the_start_is_that_of_its_file(label: str, parts: list[str]) -> None:
    found = kept("start")["median_parts"]
    seconds = sum(found[part][0] for part in parts)
    assert disagreements(cells(SPEED, "## The start", label), [seconds]) == []


def test_parts_of_the_start_with_figures_in_their_names_and_the_sum_are_those_of_the_file() -> None:
    found, page = kept("start"), text_of(SPEED)
    assert f"optimizer, replay | {found['median_parts']['parts of the training'][0]:.2f} |" in page
    assert f"emulated by the workers | {found['median_parts']['filling the replay'][0]:.2f} |" in page
    assert f"| all | {found['median_totals']['seconds']:.2f} |" in page


def test_what_surrounds_training_costs_what_the_files_have() -> None:
    page = text_of(SPEED)
    runs, pages, sinks = kept("compare"), kept("dashboard"), kept("sinks")
    first, again = pages["first_seconds"].values(), pages["again_seconds"].values()
    assert f"| {runs['median_seconds']:.1f} s, {runs['max_peak_bytes'] / 1e6:.0f} MB |" in page
    assert f"| {min(first):.1f} to {max(first):.1f} s the first time" in page
    assert f"s the first time, {min(again):.1f} to {max(again):.1f} s again |" in page
    assert (
        f"| {max(each['share_of_a_core'] for each in kept('live_view')['sizes']):.0%} of a core".replace(
            "%", " %"
        )
        in page
    )
    assert f"| {100 * sinks['share']:.1f} % of training's processor time; W&B's own process took" in page
    assert f"W&B's own process took {sinks['wandb_process_cpu_seconds']:.1f} s" in page
    assert f"| {kept('record')['medians']['times_real_time']:.1f} times as fast as the video plays |" in page


UPDATES = {
    "dqn": "plain DQN, Adam", "double": "`double`", "dueling": "`dueling`", "noisy": "`noisy`",
    "c51": "`c51`, 51 atoms", "qr_dqn": "`qr_dqn`, 200 quantiles",
    "iqn 8/8/8": "`iqn`, N = 8, N′ = 8, K = 8", "iqn 8/8/32": "`iqn`, 8, 8, 32",
    "iqn 64/64/32": "`iqn`, 64, 64, 32: the specs'", "m_dqn": "`munchausen`",
    "m_iqn 8/8/8": "`munchausen` and `iqn`, 8, 8, 8", "rainbow": "Rainbow",
    "impala": "the `impala` network, width 1", "der": "Rainbow on the `data_efficient` network",
    "drq_eps": "DrQ(ε): `double`, `dueling` and `random_shifts` on the `dopamine` network",
    "dqn, rmsprop": "plain DQN, DeepMind's RMSProp",
}  # fmt: skip
"""Rows of the table of updates by the names of their file."""


@pytest.mark.parametrize("agent", UPDATES)
def test_time_of_an_update_is_that_of_its_files(agent: str) -> None:
    two, one = (kept(name)["rounds_milliseconds"] for name in ("updates_two_threads", "updates"))
    expected = [median(row[agent] for row in two)]
    expected += [median(row[agent] / row["dqn"] for row in rounds) for rounds in (two, one)]
    assert disagreements(cells(ALGORITHMS, "## What an update costs", UPDATES[agent]), expected) == []


@pytest.mark.parametrize(
    ("file", "before"), [("toy", "of the toy game eight"), ("atari", "`pong_quick`, eight")]
)
def test_difference_of_precisions_is_that_of_the_scores_in_their_file(file: str, before: str) -> None:
    runs = kept(f"precision_{file}")["runs"]
    scores = {name: [run["score"] for run in runs[name]] for name in ("fp32", "bf16")}
    found = difference(column(scores["bf16"]), column(scores["fp32"]))
    assert found.interval
    expected = [figure for each in scores.values() for figure in (fmean(each), stdev(each))]
    expected += [found.value, 95, found.interval.low, found.interval.high]
    sentence = text_of(ALGORITHMS).partition(before)[2].partition(", so that no difference")[0]
    assert disagreements(re.sub(r"\]\([^)]*\)", "]", sentence), expected) == []


@pytest.mark.parametrize("file", ["toy", "atari"])
def test_summary_of_precisions_has_the_difference_of_its_runs(file: str) -> None:
    kept_file = kept(f"precision_{file}")
    scores = [column([run["score"] for run in kept_file["runs"][name]]) for name in ("bf16", "fp32")]
    found, stated = difference(*scores), kept_file["summary"]["bf16_less_fp32"]
    assert found.value == pytest.approx(stated["value"])
    assert asdict(found)["interval"] == pytest.approx(stated["interval"])
