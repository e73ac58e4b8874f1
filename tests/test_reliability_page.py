"""Figures of the page on what survives are those of the files that it names."""

from collections import Counter

import pytest
from evidence import cells, disagreements, kept, text_of

PAGE = "results/reliability.md"
VICTIMS = {
    "runner": "of the command", "training": "of a run", "worker": "of a Ray worker",
    "raylet": "of the raylet", "head": "of the head",
}  # fmt: skip


def test_every_sweep_has_equal_digests() -> None:
    found = kept("sweep_digests")
    assert text_of(PAGE).count(f"| {found['runs']} runs (3 seeds) by `--on local`") == 1
    assert {place: each["equal_digests"] for place, each in found["places"].items()} == {
        "local": found["runs"], "ray": found["runs"],
    }  # fmt: skip


def test_kills_of_sweeps_are_those_of_their_file() -> None:
    found = kept("sweep_kills")
    on_ray = {victim: found["kills_by_victim"][f"ray: {victim}"] for victim in VICTIMS}
    each = ", ".join(f"{count} {VICTIMS[victim]}" for victim, count in on_ray.items())
    total = sum(on_ray.values())
    text = (
        f"{found['kills']} kills while {found['sweeps']} sweeps of {found['runs_in_a_sweep']} runs (1 seed)"
    )
    assert text in text_of(PAGE)
    assert f"{total} on Ray ({each}), {found['kills'] - total} on one machine" in text_of(PAGE)
    assert found["sweeps_with_a_problem"] == 0


@pytest.mark.parametrize(
    ("place", "most", "words"),
    [("ray", 4, "on Ray fell while none to four of"), ("local", 2, "on one machine while none to two had")],
)
def test_runs_that_had_finished_at_a_kill_are_as_many_as_the_page_says(
    place: str, most: int, words: str
) -> None:
    (found,) = (each for each in kept("sweep_kills")["results"] if each["on"] == place)
    finished = [kill["runs_finished"] for kill in found["kills"]]
    assert (min(finished), max(finished)) == (0, most)
    assert words in text_of(PAGE)


def test_takeover_takes_the_time_of_its_file() -> None:
    found = kept("sweep_takeover")
    seconds = [each["seconds_until"] for each in found["rounds"]]
    taken, resumed = (max(each[what] for each in seconds) for what in ("taken_over", "resumed"))
    sentence = text_of(PAGE).partition("| after at most ")[2].partition(", which is after three")[0]
    assert disagreements(sentence, [taken, resumed, found["most_heartbeats_from_silent_to_resumed"]]) == []
    assert all(each["is_exact"] for each in found["rounds"])
    assert len(found["rounds"]) == 5


def test_two_runs_at_once_take_the_time_of_their_file() -> None:
    at_once, in_turn = kept("sweep_threads")["medians"].values()
    answer = (
        text_of(PAGE).partition("one after the other with two threads | ")[2].partition(" frames/s in all")[0]
    )
    expected = [
        each[what] for what in ("seconds", "training_frames_per_second") for each in (at_once, in_turn)
    ]
    assert disagreements(answer, expected) == []


def test_a_sweep_of_a_thousand_runs_costs_what_its_file_has() -> None:
    found = kept("sweep_many")
    plan, status = found["seconds_of_plan_command"], found["seconds_of_status_command"]
    text = text_of(PAGE)
    assert (
        f"| {plan:.1f} s, {status:.1f} s (both with the start of the program), "
        f"{found['seconds_to_refresh_the_status']:.1f} s |"
    ) in text
    assert f"| {100 * found['runner_share_of_a_core']:.2f} % of a core |" in text


def test_work_lost_at_a_kill_is_that_of_its_file() -> None:
    found = kept("lost_work")
    most = max(kill["lost_seconds"] for kill in found["kills"])
    assert len(found["kills"]) == 6
    assert f"| at most {most} s in six kills |" in text_of(PAGE)


def test_kills_at_any_place_are_those_of_their_file() -> None:
    found = kept("kill_anywhere")
    through = {way: [each for each in found["results"] if each["through"] == way] for way in ("fork", "dqn")}
    kills = sum(len(each["kills"]) for each in found["results"])
    assert (kills, found["runs_that_differ"]) == (found["kills"], 0)
    assert sum(len(each["kills"]) for each in through["dqn"]) == 10
    assert f"| {kills} kills in {found['cases']} cases, ten of them of `dqn` itself |" in text_of(PAGE)


def test_kills_of_runs_with_raised_budgets_are_those_of_their_file() -> None:
    found = kept("kill_raised")
    assert (found["runs"], found["runs_that_differ"]) == (10, 0)
    assert f"| {found['kills']} kills in ten runs whose budgets" in text_of(PAGE)


def test_faults_of_a_disk_are_those_of_their_file() -> None:
    failed, lost = kept("disk_faults")["failed_calls"], kept("disk_faults")["lost_writes"]
    assert (failed["wrong"], lost["wrong"]) == ({}, {})
    assert f"| {failed['faults']} system calls of `dqn train` and `dqn resume`" in text_of(PAGE)
    assert (
        f"| {lost['states']} states that a power failure can leave of a recorded run of {lost['calls']}"
        in (text_of(PAGE))
    )


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("fuzz", "from {least:,} ({fewest}) to {most:,} ({longest}) a reader"),
        ("fuzz_690_mb", "{total:,} inputs, from {least:,} ({fewest}) to {most:,} ({longest}), led"),
    ],
)
def test_inputs_of_readers_are_those_of_their_file(file: str, sentence: str) -> None:
    readers = Counter({each["reader"]: each["executions"] for each in kept(file)["readers"]})
    (longest, most), *_, (fewest, least) = readers.most_common()
    text = sentence.format(least=least, fewest=fewest, most=most, longest=longest, total=readers.total())
    assert text in text_of(PAGE)
    assert all(each["findings"] == [] for each in kept(file)["readers"])


@pytest.mark.parametrize(
    ("part", "label"), [("whole_replay", "everything new"), ("quarter_new", "250,000 frames new")]
)
def test_a_checkpoint_takes_what_its_file_has(part: str, label: str) -> None:
    found = kept("checkpoint")[part]
    expected = [found["pause_seconds"], found["write_seconds"], found["bytes"] / 1e6]
    expected += [found["new_bytes"] / 1e6] if part == "quarter_new" else []
    assert disagreements(cells(PAGE, "## What does a checkpoint take?", label), expected) == []


def test_a_resume_takes_the_time_of_its_file() -> None:
    seconds = kept("checkpoint")["resume_to_first_update_seconds"]
    assert f"resumes to its first update in {seconds:.1f} s" in text_of(PAGE)


def test_memory_of_a_run_is_that_of_its_files() -> None:
    run, replay = kept("peak_memory"), kept("replay_memory")
    planned = f"`--plan` says {run['promised_bytes'] / 1e9:.1f} GB"
    assert (
        f"at most {run['peak_bytes'] / 1e9:.2f} GB, all processes' own peaks added up; {planned}"
        in text_of(PAGE)
    )
    assert f"| {replay['resident_bytes'] / 1e9:.2f} GB, as `--plan` predicts |" in text_of(PAGE)
    assert replay["predicted_over_resident"] == pytest.approx(1, abs=0.005)


def test_games_that_resume_exactly_are_those_of_their_file() -> None:
    games = kept("exactness")["games"]
    exact = [each for each in games if not any(each["differing_steps"].values())]
    assert f"{len(exact)} of ale-py 0.12.1's {len(games)} single-player games" in text_of(PAGE)


def test_digest_of_every_family_differs_from_the_version_before() -> None:
    bits = kept("before_after_bits")["bits"].values()
    assert [each["equal"] for each in bits] == [False] * 8
    assert "State digests differ for all eight" in text_of(PAGE)
