"""The views of a sweep: lines for what changes, and a table that fits the terminal."""

import io
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from atari_dqn.cli.watch import watch
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.run.sweep.failures import Failure, write_failure_record
from atari_dqn.run.sweep.status import SweepStatus
from atari_dqn.scale.members import load_sweep
from atari_dqn.scale.opening import open_sweep
from atari_dqn.view import sweep_views, wrapping
from atari_dqn.view.sweep_text import table_lines
from atari_dqn.view.sweep_views import LiveSweepView, PlainSweepView


@pytest.fixture
def status(tmp_path: Path) -> SweepStatus:
    path = tmp_path / "mine.toml"
    path.write_text('spec = "catch_smoke"\nseeds = 30\n')
    hardware = find_hardware(Path.cwd(), with_gpus=False)
    opened = open_sweep(load_sweep(path), tmp_path / "runs", device="cpu", hardware=hardware)
    return SweepStatus(opened.folder.path)


def end(status: SweepStatus, seed: int) -> str:
    run = status.folder.path / f"catch_smoke_catch_seed{seed}"
    run.mkdir()
    (run / "eval_log.csv").write_text("step,mean_return,frame_caps\n1,7.5,0\n")
    (run / "summary.json").write_text("{}")
    (run / "spec.toml").touch()
    return run.name


def test_plain_lines_in_a_terminal_are_broken_at_its_width(
    status: SweepStatus, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(wrapping, "terminal_columns", lambda stream: 20)
    stream = io.StringIO()
    PlainSweepView(status, stream).report("a sentence that is longer")
    assert stream.getvalue().splitlines()[-2:] == ["a sentence that is", "  longer"]


def test_plain_lines_are_of_what_changed(status: SweepStatus, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sweep_views, "_PLAIN_SECONDS", 0.0)
    stream = io.StringIO()
    view = PlainSweepView(status, stream)
    view.show([end(status, 3)])
    failure = Failure(kind="halted", reason="the loss", exit_code=3)
    write_failure_record(status.folder.failure("catch_smoke_catch_seed4"), failure)
    view.show(["catch_smoke_catch_seed4"])
    view.report("a sentence")
    lines = stream.getvalue().splitlines()
    assert lines == [
        "mine: 30 waiting; 0.0% of 120k frames",
        "catch_smoke_catch_seed3: finished, 7.5",
        "catch_smoke_catch_seed4: halted: the loss",
        "a sentence",
    ]


def test_the_plain_view_ends_with_totals_and_leaves_remedies_to_the_command(status: SweepStatus):
    stream = io.StringIO()
    view = PlainSweepView(status, stream)
    failure = Failure(kind="invalid", reason="no space", exit_code=2)
    write_failure_record(status.folder.failure("catch_smoke_catch_seed1"), failure)
    view.close()
    assert "mine: 1 invalid, 29 waiting; 0.0% of 120k frames" in stream.getvalue()
    assert stream.getvalue().count("no space") == 1
    assert "remove the cause" not in stream.getvalue()


def test_the_live_table_fits_and_names_failures_first(status: SweepStatus):
    failure = Failure(kind="halted", reason="the loss", exit_code=3)
    write_failure_record(status.folder.failure("catch_smoke_catch_seed29"), failure)
    console = Console(file=io.StringIO(), force_terminal=True, width=100, height=20)
    view = LiveSweepView(status, console)
    view.report("a sentence")
    drawn = view._drawn().plain.splitlines()
    view.close()
    assert len(drawn) <= 20
    assert max(map(len, drawn)) <= 100
    assert drawn[1].split()[:2] == ["catch_smoke_catch_seed29", "halted"]
    assert [drawn[-3], drawn[-1]] == ["and 17 runs more", "a sentence"]


@pytest.mark.parametrize("plain", [True, False])
def test_watching_a_sweep_ends_with_the_reasons_of_failures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, plain: bool
):
    path = tmp_path / "mine.toml"
    path.write_text('spec = "catch_smoke"\nseeds = 1\n')
    hardware = find_hardware(Path.cwd(), with_gpus=False)
    folder = open_sweep(load_sweep(path), tmp_path / "runs", device="cpu", hardware=hardware).folder
    failure = Failure(kind="invalid", reason="no space", exit_code=2)
    write_failure_record(folder.failure("catch_smoke_catch_seed1"), failure)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: not plain)
    watch([folder.path], plain=plain)
    last = capsys.readouterr().out.splitlines()[-3:]
    assert last[0].endswith("catch_smoke_catch_seed1 invalid: no space")
    assert last[1].strip().startswith("remove the cause")


def test_totals_and_reports_are_whole_at_80_columns(status: SweepStatus):
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=24)
    view = LiveSweepView(status, console)
    sentence = "catch_smoke_catch_seed1: the process was killed by SIGKILL; it is started again in a minute"
    for _ in range(4):
        view.report(sentence)
    page = Console(file=io.StringIO(), width=80, height=24)
    page.print(view._drawn())
    view.close()
    assert isinstance(page.file, io.StringIO)
    lines = page.file.getvalue().splitlines()
    assert " ".join(" ".join(lines).split()).count(sentence) == 4
    assert len(lines) < 24
    assert max(map(len, lines)) <= 80


def test_names_of_runs_keep_their_seeds_and_large_scores_their_distance(status: SweepStatus):
    status.refresh()
    first = status.members[0]
    member = replace(first.member, name="phoenix_with_a_long_name_seed12")
    running = {"state": "running", "env_frames": 10, "total_frames": 10**9, "frames_per_second": 1e3}
    each = replace(first, member=member, evaluation={"mean_return": 1_234_567.0, "frame_caps": 1}, **running)
    _, line = table_lines([each], 80)
    assert line.startswith("phoenix…e_seed12 running")
    assert line.endswith(" 1.23M†")


def test_runs_whose_names_differ_in_the_middle_have_different_names(status: SweepStatus):
    status.refresh()
    names = [f"a_long_{method}_catch_seed1" for method in ("one", "other")]
    members = [
        replace(status.members[0], member=replace(status.members[0].member, name=name)) for name in names
    ]
    first, second = (line.split()[0] for line in table_lines(members, 80)[1:])
    assert first != second


@pytest.mark.parametrize(("columns", "titles"), [(79, 8), (70, 7), (50, 5), (30, 4)])
def test_a_narrow_table_leaves_columns_out(status: SweepStatus, columns: int, titles: int):
    status.refresh()
    heading, *lines = table_lines(status.members, columns)
    assert len(heading.split()) == titles
    assert max(map(len, [heading, *lines])) <= max(columns, 42)


def test_alerts_are_separated_and_a_heading_fits_80_columns(status: SweepStatus):
    status.refresh()
    member = replace(status.members[0], alerts=("q_bound warned",), belongs=False)
    heading, line = table_lines([member], 80)
    assert line.endswith(" q_bound warned, not in the sweep file any more")
    assert len(heading) <= 80
