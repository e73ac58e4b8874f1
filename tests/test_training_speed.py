"""The module that the comparisons of training speed in `benchmarks/` share."""

import sys
import time
from pathlib import Path

import psutil
import pytest

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import tracks
import versus_cleanrl
import versus_sb3
from busy import busy_programs
from contender import Contender, check, words
from training_speed import Conditions, Match, chosen_rows, options_parser, take_turns, united

ALL = [tracks, versus_sb3, versus_cleanrl]


def contender(folder, name, speeds):
    """Return a program that prints one of `speeds` each time it is run, in order."""
    script, count = folder / f"{name}.py", folder / f"{name}.count"
    script.write_text(
        "import json, pathlib\n"
        f"count = pathlib.Path({str(count)!r})\n"
        "done = int(count.read_text()) if count.exists() else 0\n"
        "count.write_text(str(done + 1))\n"
        "print('chatter')\n"
        f"print(json.dumps({{'frames_per_second': {speeds!r}[done]}}))\n"
    )
    return Contender(python=Path(sys.executable), script=str(script))


def test_a_ratio_is_the_median_of_those_within_a_round(tmp_path):
    # 2, 1 and 4 within the rounds; the medians' own ratio is 30 / 10
    match = Match(
        contenders={
            "a": contender(tmp_path, "a", [20.0, 30.0, 40.0]),
            "b": contender(tmp_path, "b", [10.0, 30.0, 10.0]),
        },
        ratios=[("a", "b")],
    )
    found = take_turns(match, Conditions(seconds=1.0, threads=1), rounds=3)
    assert found["median_ratio"] == {"a / b": 2.0}


def test_an_option_with_several_values_is_given_several_times():
    assert words({"envs": 8, "set": ("x=1", "y=2")}) == ["--envs", "8", "--set", "x=1", "--set", "y=2"]


def test_a_contender_of_two_comparisons_runs_once():
    shared, own = Contender(python=Path("p"), script="ours"), Contender(python=Path("p"), script="theirs")
    first = Match(contenders={"ours": shared}, ratios=[])
    second = Match(contenders={"ours": shared, "theirs": own}, ratios=[("ours", "theirs")])
    assert list(united([first, second]).contenders) == ["ours", "theirs"]


def test_a_system_that_fails_ends_the_comparison(tmp_path):
    script = tmp_path / "broken.py"
    script.write_text("raise SystemExit(3)\n")
    match = Match(contenders={"a": Contender(python=Path(sys.executable), script=str(script))}, ratios=[])
    with pytest.raises(Exception, match="exit status 3"):
        take_turns(match, Conditions(seconds=1.0, threads=1), rounds=1)


@pytest.mark.slow
def test_busy_over_quiet_is_a_ratio_of_neighbouring_turns(tmp_path):
    match = Match(
        contenders={
            "a": contender(tmp_path, "a", [20.0, 10.0, 40.0, 10.0, 30.0, 9.0]),
            "b": contender(tmp_path, "b", [10.0, 1.0, 10.0, 2.0, 10.0, 3.0]),
        },
        ratios=[("a", "b")],
    )
    found = take_turns(match, Conditions(seconds=1.0, threads=1, busy=(0, 1)), rounds=3)
    assert found["median_ratio"] == {
        "a / b": 3.0,
        "a, 1 busy / b, 1 busy": 5.0,
        "a, 1 busy / a": 0.3,
        "b, 1 busy / b": 0.2,
    }


def test_as_many_busy_programs_run_while_a_contender_is_measured(tmp_path):
    script = tmp_path / "counts.py"
    script.write_text(
        "import json, os, psutil\n"
        "neighbours = psutil.Process(os.getppid()).children()\n"
        "busy = sum('os.getppid()' in ' '.join(each.cmdline()) for each in neighbours)\n"
        "print(json.dumps({'frames_per_second': busy}))\n"
    )
    match = Match(contenders={"a": Contender(python=Path(sys.executable), script=str(script))}, ratios=[])
    found = take_turns(match, Conditions(seconds=1.0, threads=1, busy=(1, 2)), rounds=1)
    assert found["median_frames_per_second"] == {"a, 1 busy": 1, "a, 2 busy": 2}


def reporting(folder, isa):
    """Return a program whose torch reports an instruction set, and whose oneDNN does if its log is on."""
    script = folder / "reports.py"
    script.write_text(
        "import json, os\n"
        "if os.environ['ONEDNN_VERBOSE'] == '1': print('onednn_verbose,v1,info,cpu,isa:Intel AVX2')\n"
        f"print(json.dumps({{'frames_per_second': 1, 'cpu_capability': {isa!r}}}))\n"
    )
    return Contender(python=Path(sys.executable), script=str(script))


def test_a_check_returns_the_reports_of_the_program_and_of_its_libraries(tmp_path):
    report = check("a", reporting(tmp_path, "AVX2"), threads=1, isa="avx2")
    assert (report["cpu_capability"], report["onednn"], report["mkl"]) == ("AVX2", "Intel AVX2", None)


def test_a_contender_that_does_not_keep_to_the_instruction_set_ends_the_comparison(tmp_path):
    with pytest.raises(SystemExit, match="a does not keep to avx2: torch reports 'AVX512'"):
        check("a", reporting(tmp_path, "AVX512"), threads=1, isa="avx2")


def test_what_there_is_is_saved_after_each_round(tmp_path):
    match = Match(contenders={"a": contender(tmp_path, "a", [1.0, 3.0])}, ratios=[])
    saved = []
    take_turns(match, Conditions(seconds=1.0, threads=1), rounds=2, save=saved.append)
    assert [each["median_frames_per_second"] for each in saved] == [{"a": 1.0}, {"a": 2.0}]


def test_busy_programs_use_a_core_each_and_end_with_the_block():
    others = set(psutil.Process().children())
    with busy_programs(2):
        programs = set(psutil.Process().children()) - others
        until = time.monotonic() + 30
        while min(program.cpu_times().user for program in programs) < 0.2 and time.monotonic() < until:
            time.sleep(0.05)
        used = [program.cpu_times().user for program in programs]
    assert len(used) == 2
    assert min(used) >= 0.2
    assert not any(program.is_running() for program in programs)


@pytest.fixture
def peers(monkeypatch, tmp_path):
    """Leave out the installation of other systems, and make a checkout."""
    for module in (versus_sb3, versus_cleanrl):
        monkeypatch.setattr(module, "prepare", lambda venv, _packages, **_more: venv / "bin" / "python")
    (tmp_path / "cleanrl").mkdir()
    for script in ("c51_atari.py", "rainbow_atari.py"):
        (tmp_path / "cleanrl" / script).touch()
    return tmp_path


def chosen(*arguments):
    return chosen_rows(ALL, options_parser("", ALL).parse_args(["--out", "x.json", *map(str, arguments)]))


def test_rows_of_one_table_can_be_chosen(peers):
    match = chosen("--cleanrl", peers, "--rows", "track_a", "eight", "c51", "rainbow", "pong_quick")
    assert match.ratios == [
        ("ours A", "SB3 DQN"),
        ("ours A, 8 environments", "SB3 DQN, 8 environments"),
        ("ours A", "CleanRL dqn_atari"),
        ("ours C51", "CleanRL c51_atari"),
        ("ours Rainbow", "CleanRL rainbow_atari"),
    ]
    assert match.contenders.keys() == {"pong_quick", *(name for pair in match.ratios for name in pair)}


def test_pong_quick_alone_needs_no_other_system():
    assert list(chosen("--rows", "pong_quick").contenders) == ["pong_quick"]


def test_pong_quick_keeps_the_settings_of_its_spec():
    options = chosen("--rows", "pong_quick").contenders["pong_quick"].options
    assert (options["envs"], options["epsilon"], options["prefill_steps"]) == (8, 0.02, 5_000)
    assert (options["capacity_steps"], options["target_period_updates"]) == (100_000, 500)


def test_all_rows_without_a_checkout_say_what_is_left_out(peers):
    match = chosen()
    assert "CleanRL c51_atari" not in match.contenders
    assert [note.partition(" was not measured")[0] for note in match.notes] == [
        "CleanRL c51_atari",
        "CleanRL rainbow_atari",
    ]


def test_a_row_asked_for_that_lacks_its_script_is_an_error(peers):
    with pytest.raises(SystemExit, match=r"no cleanrl/c51_atari\.py"):
        chosen("--rows", "c51")


@pytest.mark.parametrize("words", [("--isa", "sse"), ("--beside", "-1"), ("--rounds", "0"), ("--rows", "a")])
def test_options_of_no_meaning_are_refused(words, capsys):
    with pytest.raises(SystemExit):
        chosen(*words)
    assert f"argument {words[0]}: " in capsys.readouterr().err
