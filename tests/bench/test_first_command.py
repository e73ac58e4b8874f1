"""The measurement of the README's first command, on runs that a program in place of `dqn` writes."""

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import first_command
from first_command import first_reaching, measure, outcome, parsed, result

WORDS = ("train", "pong_quick", "--set", "seed=1")
DQN = """
import json, sys, time
from pathlib import Path

words = sys.argv[1:]
run = Path(words[words.index("--run-dir") + 1] if words[0] == "train" else words[1])
run.mkdir(exist_ok=True)
(run / "spec.toml").touch()
(run / "provenance.json").write_text(json.dumps({"kernels": ["portable"], "torch_threads": 2}))
with (run / "events.jsonl").open("a") as events:
    kind = "started" if words[0] == "train" else "resumed"
    print(json.dumps({"kind": kind, "timestamp": "2026-01-01T00:01:00+00:00"}), file=events)
DO
"""
WINS = """
games = "".join(f"{n}000,15\\n" for n in range(1, 22))
(run / "train_log.csv").write_text("env_frames,episode_return\\n" + games)
times = "4000,60.0\\n20000,240.0\\n24000,300.0\\n"
(run / "throughput_log.csv").write_text("env_frames,elapsed_seconds\\n" + times)
time.sleep(60)
(run / "not stopped").touch()
"""
DIES = "sys.exit(143)"


@pytest.fixture
def program(monkeypatch, tmp_path):
    """Put a program in the place of `dqn`, whose commands start at a known moment."""
    monkeypatch.setattr(first_command, "POLL_SECONDS", 0.05)
    monkeypatch.setattr("time.time", lambda: 1_767_225_600.0)  # a minute before the run's first event

    def put(do: str) -> None:
        script = tmp_path / "dqn.py"
        script.write_text(DQN.replace("DO", do))
        monkeypatch.setattr(first_command, "DQN", (sys.executable, str(script)))

    return put


def write(run, *, games, reports, summary=False):
    """Write a run's tables: games as (frames, return), reports as (frames, seconds)."""
    run.mkdir(exist_ok=True)
    for table, head, rows in (
        ("train_log", "env_frames,episode_return", games),
        ("throughput_log", "env_frames,elapsed_seconds", reports),
    ):
        lines = [head, *(f"{frames},{value}" for frames, value in rows)]
        (run / f"{table}.csv").write_text("\n".join(lines) + "\n")
    (run / "events.jsonl").write_text('{"kind": "started", "timestamp": "2026-01-01T00:00:06+00:00"}\n')
    (run / "provenance.json").write_text("{}")
    began = {"words": list(WORDS), "began": 1_767_225_600.0}
    run.with_name(f"{run.name}.command.json").write_text(json.dumps(began))
    if summary:
        (run / "summary.json").touch()


def test_the_score_is_reached_by_the_mean_of_twenty_games():
    assert first_reaching([20.0] * 19, 12.0) is None
    assert first_reaching([20.0] * 20, 12.0) == 19
    assert first_reaching([-21.0] * 20 + [21.0] * 20, 12.0) == 20 + 15  # 16 of 21 and 4 of −21: 12.6


def test_minutes_are_those_of_the_report_after_the_game_and_of_the_start(tmp_path):
    games = [(1_000 * number, 13.0) for number in range(1, 21)]
    write(tmp_path / "seed1", games=games, reports=[(16_000, 100.0), (20_000, 114.0), (24_000, 200.0)])
    found = outcome(tmp_path / "seed1", until=12.0, most_minutes=10.0)
    assert found is not None
    assert (found["reached"], found["env_frames"], found["startup_seconds"]) == (True, 20_000, 6.0)
    assert found["minutes"] == 2.0  # 6 + 114 seconds


def test_there_is_no_answer_before_the_report_after_the_game(tmp_path):
    games = [(1_000 * number, 13.0) for number in range(1, 21)]
    write(tmp_path / "seed1", games=games, reports=[(16_000, 100.0)])
    assert outcome(tmp_path / "seed1", until=12.0, most_minutes=10.0) is None


def test_a_row_that_is_half_written_is_not_read(tmp_path):
    games = [(1_000 * number, 13.0) for number in range(1, 21)]
    write(tmp_path / "seed1", games=games, reports=[(16_000, 100.0)])
    with (tmp_path / "seed1" / "throughput_log.csv").open("a") as table:
        table.write("20000,11")
    assert outcome(tmp_path / "seed1", until=12.0, most_minutes=10.0) is None


@pytest.mark.parametrize("summary", [False, True], ids=["time is over", "budget is over"])
def test_a_run_that_does_not_win_is_over_with_its_time_or_its_budget(tmp_path, summary):
    seconds = 100.0 if summary else 600.0
    write(tmp_path / "seed1", games=[(1_000, -21.0)], reports=[(16_000, seconds)], summary=summary)
    found = outcome(tmp_path / "seed1", until=12.0, most_minutes=10.0)
    assert found is not None
    assert (found["reached"], found["minutes"]) == (False, None)


def test_a_run_is_stopped_as_soon_as_it_wins(tmp_path, program):
    program(WINS)
    found = measure(tmp_path / "seed1", WORDS, until=12.0, most_minutes=10.0)
    assert (found["reached"], found["minutes"], found["kernels"]) == (True, 5.0, ["portable"])
    assert not (tmp_path / "seed1" / "not stopped").exists()


def test_a_run_that_was_interrupted_is_resumed_by_the_same_command(tmp_path, program):
    program(DIES)
    with pytest.raises(SystemExit, match="the same command goes on"):
        measure(tmp_path / "seed1", WORDS, until=12.0, most_minutes=10.0)
    program(WINS)
    found = measure(tmp_path / "seed1", WORDS, until=12.0, most_minutes=10.0)
    assert (found["resumes"], found["minutes"]) == (1, 5.0)


def test_a_run_that_has_the_answer_is_not_run_again(tmp_path, program):
    program(WINS)
    first = measure(tmp_path / "seed1", WORDS, until=12.0, most_minutes=10.0)
    program("raise SystemExit(9)")
    assert measure(tmp_path / "seed1", WORDS, until=12.0, most_minutes=10.0) == first


def test_a_training_that_fails_ends_the_measurement_with_its_log(tmp_path, program):
    program("raise SystemExit(3)")
    with pytest.raises(SystemExit, match=r"ended with 3: see .*seed1\.log"):
        measure(tmp_path / "seed1", WORDS, until=12.0, most_minutes=10.0)


def test_a_run_that_other_words_began_is_refused(tmp_path, program):
    program(WINS)
    measure(tmp_path / "seed1", WORDS, until=12.0, most_minutes=10.0)
    with pytest.raises(SystemExit, match="was begun with train pong_quick --set seed=1"):
        measure(tmp_path / "seed1", ("train", "pong_trackA"), until=12.0, most_minutes=10.0)


def options(*words):
    return parsed(["--runs", "runs", "--out", *map(str, words)])


@pytest.mark.parametrize(
    ("minutes", "median"), [([3.0, 5.0, 4.0], 4.0), ([3.0, None, 4.0], 4.0), ([3.0, None, None], None)]
)
def test_a_seed_that_does_not_win_counts_as_the_slowest(minutes, median):
    found = {seed: {"reached": value is not None, "minutes": value} for seed, value in enumerate(minutes)}
    assert result(found, options("x.json"))["median_minutes"] == median


def test_a_result_of_other_settings_is_not_replaced(tmp_path, capsys):
    out = tmp_path / "first.json"
    answer = {1: {"reached": True, "minutes": 3.0}}
    out.write_text(json.dumps(result(answer, options(out))))
    assert options(out).until == 12.0
    with pytest.raises(SystemExit):
        options(out, "--until", 16)
    assert "holds a result of other settings" in capsys.readouterr().err
