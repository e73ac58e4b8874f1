import fcntl
import io
import math
import os
import pty
import struct
import termios
from collections.abc import Callable
from contextlib import suppress

import pytest

from atari_dqn.telemetry.columns import TABLES
from atari_dqn.telemetry.events import Event, GateChanged, GateState, Notice, Progress, Row
from atari_dqn.view.plain import PlainView

MakeRow = Callable[..., Row]
MakePeriod = Callable[..., list[Row]]


def view_on(stream: io.TextIOBase) -> PlainView:
    return PlainView(title="pong", total_frames=50_000_000, stream=stream)  # type: ignore[arg-type]


def lines_after(*events: Event) -> list[str]:
    stream = io.StringIO()
    view = view_on(stream)
    for event in events:
        view.handle(event)
    return stream.getvalue().splitlines()[1:]


def displayed(*events: Event, columns: int) -> list[str]:
    """Return the lines after the first that are written to a terminal of some width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with open(theirs, "w") as stream:  # noqa: PTH123
        view = view_on(stream)
        for event in events:
            view.handle(event)
    text = b""
    with suppress(OSError):  # at the end of what was written
        while piece := os.read(ours, 65_536):
            text += piece
    os.close(ours)
    return text.decode().splitlines()[1:]


def test_first_line_names_the_run_and_its_budget() -> None:
    stream = io.StringIO()
    view_on(stream)
    assert stream.getvalue() == "pong: 50,000,000 frames\n"


def test_period_is_one_line_with_its_figures(period: MakePeriod) -> None:
    rows = period(
        312_500, elapsed_seconds=900.0, rolling_return=-20.25, loss=0.0123, mean_q=0.5, grad_norm=12.345
    )
    assert lines_after(*rows) == [
        " 1.25M   2.5% return -20.2 loss 0.012 Q  0.500 grad 12.35 1,012 f/s       - left"
    ]


def test_time_left_follows_from_the_rate(period: MakePeriod) -> None:
    rows = [*period(1000, elapsed_seconds=4.0), *period(2000, elapsed_seconds=8.0)]
    assert lines_after(*rows)[1].endswith("13h 53m left")


def test_values_before_learning_are_dashes(period: MakePeriod) -> None:
    rows = period(1000, elapsed_seconds=1.0, loss=math.nan, mean_q=math.nan, grad_norm=math.nan)
    assert "loss     - Q      - grad     - " in lines_after(*rows)[0]


def test_period_lines_are_aligned(period: MakePeriod) -> None:
    small = period(1000, elapsed_seconds=1.0, loss=math.nan)
    large = period(
        9_000_000, elapsed_seconds=9e5, fps=9_345.0, loss=0.0124, mean_q=-1.234, rolling_return=-20.2
    )
    lines = lines_after(*small, *large)
    assert [line.index("left") for line in lines] == [lines[0].index("left")] * 2


def test_a_period_with_long_figures_is_one_line_of_a_terminal_of_80_columns(period: MakePeriod) -> None:
    first = period(1000, elapsed_seconds=1.0)
    long = period(9_000_000, elapsed_seconds=9e5, fps=2_345.0, loss=5e-4, rolling_return=-20.2)
    assert displayed(*first, *long, columns=80)[1:] == [
        "   36M  72.0% return -20.2 loss 5.0e-04 Q 0.000 grad 0.000 2,345 f/s 4d 01h left"
    ]


def test_a_period_that_ends_after_the_budget_is_100_percent(period: MakePeriod) -> None:
    stream = io.StringIO()
    view = PlainView(title="pong", total_frames=30_000, stream=stream)
    for row in period(7_506, elapsed_seconds=4.0):
        view.handle(row)
    assert stream.getvalue().splitlines()[1].startswith("   30k 100.0% return")


def test_evaluation_is_one_line_with_its_scores(row: MakeRow) -> None:
    evaluation = row(
        "eval_log", env_frames=500_000, episodes=10, mean_return=-20.1, std_return=0.32, median_return=-20.0,
        min_return=-21.0, max_return=-19.0,
    )  # fmt: skip
    assert lines_after(evaluation) == [
        "  500k  light evaluation: -20.1 ± 0.3, median -20.0, range -21.0 to -19.0, 10 episodes [0a1b2c3d]"
    ]


def test_evaluation_of_one_game_has_no_spread(row: MakeRow) -> None:
    evaluation = row(
        "eval_log", env_frames=2_000, episodes=1, mean_return=-6.0, std_return=math.nan, median_return=-6.0,
        min_return=-6.0, max_return=-6.0,
    )  # fmt: skip
    assert lines_after(evaluation) == [
        "    2k  light evaluation: -6.0, median -6.0, range -6.0 to -6.0, 1 episode [0a1b2c3d]"
    ]


def test_evaluation_says_how_many_games_the_cap_cut(row: MakeRow) -> None:
    lines = lines_after(row("eval_log", env_frames=2_000, episodes=2, frame_caps=2))
    assert "2 episodes, 2 cut by the frame cap" in " ".join(" ".join(lines).split())


LONG = Notice(kind="warning", step=1, env_frames=4, message=" ".join(["word"] * 60))


def test_notice_without_a_terminal_is_one_line() -> None:
    assert lines_after(LONG) == [f"     4  warning: {LONG.message}"]


def test_notice_of_several_lines_is_one_line_without_a_terminal() -> None:
    notice = Notice(kind="warning", step=1, env_frames=4, message="first\nsecond")
    assert lines_after(notice) == ["     4  warning: first second"]


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_notice_is_broken_at_words_within_its_terminal(columns: int) -> None:
    first, *lines = displayed(LONG, columns=columns)
    assert columns - 5 < len(first) <= columns
    assert {line[:9] for line in lines} == {f"{'':8}w"}
    assert " ".join([first, *lines]).split().count("word") == 60


def test_activity_is_announced_once_not_at_each_of_its_steps() -> None:
    twice = [Progress(activity="light evaluation", done=done, total=3) for done in (1, 2, 3)] * 2
    assert lines_after(*twice) == ["        light evaluation: 3 to do"] * 2


def test_long_activity_has_a_line_after_every_ten_of_its_steps() -> None:
    steps = [Progress(activity="final evaluation", done=done, total=30) for done in (0, 4, 9, 11, 19, 20, 30)]
    assert lines_after(*steps) == [
        "        final evaluation: 30 to do",
        "        final evaluation: 11 of 30",
        "        final evaluation: 20 of 30",
    ]


@pytest.mark.parametrize("table", TABLES)
def test_every_declared_table_is_understood(row: MakeRow, table: str) -> None:
    numbers = {name: math.nan for name, value in row(table).values.items() if not isinstance(value, str)}
    lines = displayed(row(table), row(table, **numbers | {"step": 1, "env_frames": 4}), columns=80)
    assert all(len(line) <= 80 for line in lines)


def test_character_a_terminal_cannot_show_is_replaced() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    view_on(stream).handle(Notice(kind="note", step=0, env_frames=0, message="ε is 1"))
    assert raw.getvalue().splitlines()[1] == b"     0  note: ? is 1"


def test_reader_that_leaves_a_pipe_does_not_stop_the_run() -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    view = view_on(Gone())
    assert view.handle(Notice(kind="note", step=0, env_frames=0, message="still training")) is None
    view.close()


@pytest.mark.fault("D03")
def test_change_of_a_gate_is_one_line() -> None:
    change = GateChanged(
        gate="disk",
        state="warned",
        step=1,
        env_frames=8_000,
        message="1.0 GB are free",
        value=1e9,
        threshold=1e10,
    )
    assert lines_after(change)[-1] == "    8k  gate disk warned: 1.0 GB are free"


@pytest.mark.parametrize(
    ("states", "shown"),
    [
        (["watching", "ok", "watching", "ok"], []),
        (["watching", "warned", "ok", "watching", "ok"], ["warned", "ok"]),
        (["warned", "watching", "ok"], ["warned", "ok"]),
        (["tripped"], ["tripped"]),
    ],
)
def test_an_alert_and_its_end_are_shown_and_the_state_watching_is_not(
    states: list[GateState], shown: list[GateState]
) -> None:
    changes = [
        GateChanged(gate="disk", state=state, step=1, env_frames=0, message="why", value=0.0, threshold=1.0)
        for state in states
    ]
    assert [line.split()[3] for line in lines_after(*changes)] == [f"{state}:" for state in shown]


@pytest.mark.fault("D11")
def test_report_of_the_replay_is_one_line(row: MakeRow) -> None:
    report = row(
        "replay_log", env_frames=4_000_000, transitions=980_123, median_age_steps=412_345.0,
        effective_share=0.4521, beta=0.4481, mean_weight=0.6234, terminal_share=0.0042,
    )  # fmt: skip
    assert lines_after(report) == [
        "    4M  replay of 980k: 0.4% terminal, age 412k steps, effective 45.2%, β 0.448, weight 0.623"
    ]


def test_report_of_predicted_returns_is_one_line_of_what_the_kind_has(row: MakeRow) -> None:
    nan = math.nan
    c51 = row(
        "prediction_log", env_frames=40_000, std_return=1.234, action_gap=0.05, lowest_atom_mass=0.012,
        highest_atom_mass=0.2, crossed_share=nan,
    )  # fmt: skip
    quantiles = row(
        "prediction_log", env_frames=40_000, std_return=1.234, action_gap=0.05, lowest_atom_mass=nan,
        highest_atom_mass=nan, crossed_share=0.031,
    )  # fmt: skip
    assert lines_after(c51) == [
        "   40k  predicted returns: spread 1.234, action gap 0.050, on the edge atoms 1.2% and 20.0%"
    ]
    assert lines_after(quantiles) == [
        "   40k  predicted returns: spread 1.234, action gap 0.050, 3.1% of quantiles crossed"
    ]


def test_report_of_values_is_no_line(row: MakeRow) -> None:
    nothing = dict.fromkeys(
        ("std_return", "lowest_atom_mass", "highest_atom_mass", "crossed_share"), math.nan
    )
    assert lines_after(row("prediction_log", action_gap=0.1, **nothing)) == []


def test_report_of_a_memory_is_one_line_of_what_the_agent_has(row: MakeRow) -> None:
    values = {"env_frames": 40_000, "state_norm": 3.21, "early_td_error": 0.25, "late_td_error": 0.125}
    stored = row("memory_log", **values, first_delta_q=0.012, last_delta_q=0.034)
    zero = row("memory_log", **values, first_delta_q=math.nan, last_delta_q=math.nan)
    begins = "   40k  memory: state norm 3.210, TD error 0.250 early, 0.125 late"
    assert lines_after(stored) == [f"{begins}, ΔQ 1.2% first, 3.4% last"]
    assert lines_after(zero) == [begins]


def test_returns_of_a_mix_of_epsilon_are_no_score(period: MakePeriod) -> None:
    stream = io.StringIO()
    view = PlainView(title="pong", total_frames=4_000, stream=stream, mixed_epsilon="ε 0.4 to 0.00066")
    for row in period(500, elapsed_seconds=4.0, rolling_return=12.0):
        view.handle(row)
    _, note, line = stream.getvalue().splitlines()
    assert note.strip() == "mixed: returns of training episodes with ε 0.4 to 0.00066, no score"
    assert " mixed  12.0 loss" in line
