import io
import math
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from atari_dqn.compare.reference.agents import subject_of
from atari_dqn.spec.loader import load_spec
from atari_dqn.telemetry.columns import TABLES
from atari_dqn.telemetry.events import GATES, Event, GateChanged, GateState, Notice, Progress, Row
from atari_dqn.view.live import LiveView
from atari_dqn.view.panels import fitting, sparkline

MakeRow = Callable[..., Row]
MakePeriod = Callable[..., list[Row]]
Screen = Callable[..., str]


RUNS = Path(__file__).parents[2] / "runs"
REPORT = {
    "env_frames": 4_000_000, "transitions": 980_123, "median_age_steps": 412_345.0, "effective_share": 0.4521,
    "beta": 0.4481, "mean_weight": 0.6234, "terminal_share": 0.0042,
}  # fmt: skip

SUBJECT = subject_of(load_spec(RUNS / "pong_trackA.toml").spec)


def console(width: int = 80, height: int = 24) -> Console:
    return Console(file=io.StringIO(), width=width, height=height, force_terminal=False)


@pytest.fixture
def view() -> Iterator[LiveView]:
    with closing(
        LiveView(title="pong, seed 1", total_frames=50_000_000, subject=SUBJECT, console=console())
    ) as view:
        yield view


@pytest.fixture
def screen(view: LiveView) -> Screen:
    """Shows events, and returns what stands on a screen of that size."""

    def show(*events: Event, width: int = 80, height: int = 24) -> str:
        for event in events:
            view.handle(event)
        page = console(width, height)
        page.print(view.draw(), height=height)
        assert isinstance(page.file, io.StringIO)
        return page.file.getvalue()

    return show


def test_screen_before_the_first_event_is_whole(screen: Screen) -> None:
    text = screen()
    assert "pong, seed 1" in text
    assert "starting" in text


def test_period_shows_its_figures(screen: Screen, period: MakePeriod) -> None:
    text = screen(
        *period(312_500, elapsed_seconds=900.0, loss=0.0123, mean_q=0.5, grad_norm=12.345, epsilon=0.1)
    )
    for figure in ("1.25M/50M", "2.5%", "1,012 frames/s", "0.012", "0.500", "12.35", "0.100", "75%", "253"):
        assert figure in text


def test_time_left_is_shown(screen: Screen, period: MakePeriod) -> None:
    text = screen(*period(1000, elapsed_seconds=4.0), *period(2000, elapsed_seconds=8.0))
    assert "13h 53m left" in text


def test_prefill_is_named(screen: Screen, row: MakeRow) -> None:
    place = {"step": 1000, "env_frames": 4000}
    assert "filling the replay" in screen(row("update_log", **place), row("throughput_log", **place))


def test_latest_returns_are_shown_newest_first(screen: Screen, row: MakeRow) -> None:
    episodes = [row("train_log", episode_number=n, episode_return=-21.0 + n) for n in (1, 2, 3)]
    assert "-18 -19 -20" in screen(*episodes)


def test_evaluation_is_shown(screen: Screen, row: MakeRow) -> None:
    text = screen(row("eval_log", env_frames=500_000, mean_return=-17.5, std_return=1.25))
    for figure in ("500k", "light", "-17.5", "1.2", "0a1b2c3d"):
        assert figure in text


def test_published_score_is_shown_with_the_last_evaluation(screen: Screen, row: MakeRow) -> None:
    text = screen(row("eval_log", env_frames=5_000_000, mean_return=12.0))
    assert "published -11.9 (-14.1 to -10.0)" in text
    assert "above, nnabla-rl, DQN and Double DQN" in text


def test_published_mean_of_several_evaluations_says_so_and_gives_no_verdict(
    screen: Screen, row: MakeRow
) -> None:
    text = screen(row("eval_log", env_frames=10_000_000, mean_return=12.0))
    assert "≠ mean over 8M to 12M frames" in text
    assert "above" not in text


def test_score_between_two_published_ones_is_called_interpolated(screen: Screen, row: MakeRow) -> None:
    text = screen(row("eval_log", env_frames=7_500_000, mean_return=12.0))
    assert re.search(r"interpolated -?[\d.]+ \(", text)


def test_published_score_of_another_protocol_says_so_and_gives_no_verdict(
    screen: Screen, row: MakeRow
) -> None:
    text = screen(row("eval_log", env_frames=10_000_000, mean_return=12.0, frame_caps=1))
    assert "≠ cap 400,000" in text
    assert "above" not in text


def test_evaluation_before_the_first_published_point_says_that_there_is_none(
    screen: Screen, row: MakeRow
) -> None:
    assert "nothing published here" in screen(row("eval_log", env_frames=500_000, mean_return=12.0))


def test_evaluation_under_way_is_shown_until_its_last_episode(screen: Screen) -> None:
    assert "light evaluation 4/10" in screen(Progress(activity="light evaluation", done=4, total=10))
    assert "light evaluation" not in screen(Progress(activity="light evaluation", done=10, total=10))


def test_notice_is_shown_whole(screen: Screen) -> None:
    text = screen(
        Notice(kind="resumed", step=1, env_frames=4_000_000, message="continuing from step_001000000")
    )
    assert "4M  resumed  continuing from step_001000000" in text


def gate(name: str, state: GateState) -> GateChanged:
    return GateChanged(
        gate=name, state=state, step=1, env_frames=4_000_000, message="why", value=2.0, threshold=1.0
    )


@pytest.mark.fault("D03")
def test_every_gate_is_shown_ok_from_the_start(screen: Screen) -> None:
    text = screen()
    assert all(f"· {name}" in text for name in GATES)


@pytest.mark.fault("D03")
@pytest.mark.parametrize(
    ("state", "mark"), [("ok", "·"), ("watching", "○"), ("warned", "▲"), ("tripped", "✖")]
)
def test_state_of_a_gate_is_shown(screen: Screen, state: GateState, mark: str) -> None:
    assert f"{mark} grad_norm" in screen(gate("grad_norm", state))


def test_what_a_gate_says_is_among_the_notices(screen: Screen) -> None:
    assert "4M  gate  disk warned: why" in screen(gate("disk", "warned"))


def test_what_a_gate_watches_is_not_among_the_notices(screen: Screen) -> None:
    assert "why" not in screen(gate("throughput", "watching"), gate("throughput", "ok"))


def test_brackets_in_a_notice_are_shown_as_they_are(screen: Screen) -> None:
    assert "see [env] environments" in screen(
        Notice(kind="note", step=0, env_frames=0, message="see [env] environments")
    )


@pytest.mark.parametrize("table", TABLES)
def test_every_declared_table_is_understood(screen: Screen, row: MakeRow, table: str) -> None:
    numbers = {name: math.nan for name, value in row(table).values.items() if not isinstance(value, str)}
    counts = {"step": 1, "env_frames": 4} | ({"episode_number": 1} if table == "train_log" else {})
    assert screen(row(table), row(table, **numbers | counts))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 60), (40, 10)])
def test_screen_has_exactly_the_size_of_the_terminal(
    screen: Screen, row: MakeRow, period: MakePeriod, width: int, height: int
) -> None:
    large = period(
        9_000_000, elapsed_seconds=9e5, fps=212_345.0, loss=1e-9, mean_q=-123.4, rolling_return=-2e4
    )
    scores = row("eval_log", env_frames=5e7, mean_return=20_182.4, std_return=1234.5, max_return=42_054.7)
    notice = Notice(kind="warning", step=1, env_frames=4, message="word " * 60)
    lines = screen(*large, scores, notice, width=width, height=height).splitlines()
    assert len(lines) == height
    assert max(len(line) for line in lines) <= width


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (60, ["learning", "training returns", "evaluations", "replay", "notices"]),
        (40, ["learning", "evaluations", "notices"]),
    ],
)
def test_a_narrow_terminal_has_fewer_panels_and_an_evaluation_whole(
    screen: Screen, row: MakeRow, width: int, shown: list[str]
) -> None:
    scores = row(
        "eval_log", env_frames=50_000_000, mean_return=-20.5, std_return=1.2, protocol="0a1b2c3d4e5f"
    )
    text = screen(scores, width=width)
    assert re.findall(r"╭─ ([a-z ]+) ─", text) == shown
    assert "-20.5 1.2 0a1b2c3d" in text


@pytest.mark.parametrize("width", [60, 70])
def test_a_narrow_terminal_breaks_no_word_of_a_notice(screen: Screen, width: int) -> None:
    notice = Notice(kind="checkpoint", step=2_000, env_frames=8_070, message="saved step 2,000")
    assert "saved step 2,000" in screen(notice, width=width)


def test_nothing_is_cut_at_80_columns(screen: Screen, row: MakeRow, period: MakePeriod) -> None:
    large = period(
        9_000_000, elapsed_seconds=9e5, fps=212_345.0, loss=1e-9, mean_q=-123.4, rolling_return=-2e4
    )
    episodes = [row("train_log", episode_number=n, episode_return=20_182.0) for n in range(1, 13)]
    scores = row("eval_log", env_frames=5e7, mean_return=20_182.4, std_return=1234.5, max_return=42_054.7)
    uniform = row("replay_log", **REPORT | {"effective_share": 1.0, "beta": 0.0, "mean_weight": 1.0})
    assert "…" not in screen(*large, *episodes, scores, uniform)
    assert "effective   100%" in screen(uniform)


def test_event_that_comes_while_the_screen_is_drawn_waits(
    view: LiveView, row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    episode = row("train_log", episode_number=1, episode_return=-21.0)
    training = threading.Thread(target=view.handle, args=(episode,))
    draw_header = view._header.draw

    def draw_while_training_goes_on(columns: int) -> object:
        training.start()
        training.join(timeout=0.2)
        assert training.is_alive(), "the event changed a panel that was being drawn"
        return draw_header(columns)

    monkeypatch.setattr(view._header, "draw", draw_while_training_goes_on)
    console().print(view.draw(), height=24)
    training.join(timeout=10)
    assert not training.is_alive()


def test_last_picture_stays_when_the_view_closes() -> None:
    terminal = Console(file=io.StringIO(), width=80, height=24, force_terminal=True, color_system=None)
    view = LiveView(title="pong, seed 1", total_frames=100, subject=SUBJECT, console=terminal)
    view.handle(Notice(kind="finished", step=1, env_frames=4, message="the budget is spent"))
    view.close()
    view.close()
    assert isinstance(terminal.file, io.StringIO)
    left_on_screen = terminal.file.getvalue().split("\x1b[?1049l")[-1]
    assert left_on_screen.count("the budget is spent") == 1
    assert all(f"· {name}" in left_on_screen for name in GATES)


def test_view_without_an_event_leaves_nothing() -> None:
    terminal = Console(file=io.StringIO(), width=80, height=24, force_terminal=True, color_system=None)
    LiveView(title="pong, seed 1", total_frames=100, subject=SUBJECT, console=terminal).close()
    assert isinstance(terminal.file, io.StringIO)
    assert terminal.file.getvalue().split("\x1b[?1049l")[-1].replace("\x1b[?25h", "") == ""


def test_sparkline_spans_lowest_to_highest_and_leaves_gaps() -> None:
    assert sparkline([0.0, 1.0, math.nan, 2.0], width=4) == "▁▅ █"


def test_sparkline_shows_the_latest_values() -> None:
    assert sparkline([9.0, 0.0, 1.0], width=2) == "▁█"


def test_sparkline_of_a_constant_is_flat() -> None:
    assert sparkline([3.0, 3.0], width=4) == "▁▁"


def test_scores_are_never_cut_in_the_middle() -> None:
    assert fitting([20_182.0, -5.0, 1234.0], width=10) == "20,182 -5"


@pytest.mark.fault("D11")
def test_report_of_the_replay_is_shown(screen: Screen, row: MakeRow) -> None:
    text = screen(row("replay_log", **REPORT))
    for figure in ("980k", "412k", "45%", "0.448", "0.623", "0.4%"):
        assert figure in text


def test_report_of_the_replay_leaves_notices_whole_at_80_columns(screen: Screen, row: MakeRow) -> None:
    notice = Notice(kind="resumed", step=1, env_frames=4_000_000, message="continuing from step_001000000")
    assert "4M  resumed  continuing from step_001000000" in screen(row("replay_log", **REPORT), notice)


@pytest.mark.parametrize(
    ("report", "shown"),
    [
        ((0.0123, 0.0021, math.nan), "low edge 1.2%"),
        ((0.0123, 0.0321, math.nan), "high edge 3.2%"),
        ((math.nan, math.nan, 0.25), "crossed 25.0%"),
    ],
)
def test_fuller_edge_of_a_support_or_crossed_quantiles_are_shown(
    screen: Screen, period: MakePeriod, row: MakeRow, report: tuple[float, float, float], shown: str
) -> None:
    names = ("lowest_atom_mass", "highest_atom_mass", "crossed_share")
    entries = dict(zip(names, report, strict=True))
    text = screen(*period(1000, elapsed_seconds=4.0), row("prediction_log", **entries))
    assert shown in text


def test_staleness_of_stored_states_is_shown_next_to_the_predictions(
    screen: Screen, period: MakePeriod, row: MakeRow
) -> None:
    nothing = dict.fromkeys(("lowest_atom_mass", "highest_atom_mass", "crossed_share"), math.nan)
    reports = row("prediction_log", **nothing), row("memory_log", last_delta_q=0.034)
    assert "ΔQ 3.4%" in screen(*period(1000, elapsed_seconds=4.0), *reports)


def test_a_score_of_games_that_the_cap_cut_is_marked(screen: Screen, row: MakeRow) -> None:
    text = screen(row("eval_log", env_frames=500_000, mean_return=-17.5, std_return=1.25, frame_caps=1))
    assert "-17.5†" in text


def test_returns_of_a_mix_of_epsilon_are_titled_so(period: MakePeriod) -> None:
    page = console()
    view = LiveView(
        title="pong", total_frames=100, subject=SUBJECT, console=console(), mixed_epsilon="ε 0.4 to 0.00066"
    )
    with closing(view):
        for row in period(500, elapsed_seconds=4.0, epsilon=0.05):
            view.handle(row)
        page.print(view.draw(), height=24)
    text = page.file.getvalue()
    assert "training returns, ε 0.4 to 0.00066" in text
    assert "mean ε" in text


def actors_report(count: int, **changes: object) -> Notice:
    actors = [
        {
            "actor": number, "state": "running", "frames_per_second": 1_000.0, "epsilon": 0.1,
            "lag_updates": 40.0 + number, "dropped_steps": 0, "restarts": 0,
        } | changes
        for number in range(min(count, 32))
    ]  # fmt: skip
    data = {"actors": actors, "num_actors": count, "frames_per_second": 1e3 * count, "max_lag_updates": 1_234}
    return Notice(kind="actors", step=1, env_frames=4, message="", data=data)


SAVED = Notice(kind="checkpoint", step=1, env_frames=4, message="saved step 1")


@pytest.mark.parametrize("count", [1, 2, 8, 256])
def test_notices_and_gates_are_whole_on_a_small_screen_with_actors(screen: Screen, count: int) -> None:
    drawn = screen(actors_report(count), SAVED)
    assert "saved step 1" in drawn
    assert all(gate in drawn for gate in GATES)
    assert f"{count} actor{'s' * (count > 1)}, {count}" in drawn
    assert "lag ≤ 1,234" in drawn


def test_a_higher_screen_has_a_table_of_actors(screen: Screen) -> None:
    drawn = screen(actors_report(3), SAVED, height=30)
    assert "3 actors" not in drawn
    assert drawn.count("running") == 3
    assert all(gate in drawn for gate in GATES)


def test_actors_without_room_are_counted(screen: Screen) -> None:
    drawn = screen(actors_report(256), height=30)
    assert "and 254 more" in drawn


@pytest.mark.parametrize("changes", [{"state": "[/]"}, {"state": "[link=x]"}, {"lag_updates": "many"}])
def test_a_damaged_report_of_actors_does_not_end_the_view(screen: Screen, changes: dict[str, str]) -> None:
    assert "saved step 1" in screen(actors_report(2, **changes), SAVED, height=40)


def test_a_row_of_a_table_without_increasing_frames_does_not_end_the_view(
    screen: Screen, period: MakePeriod
) -> None:
    rows = [*period(1, elapsed_seconds=4.0), *period(2, elapsed_seconds=8.0)]
    assert "- left" in screen(*(replace(row, values=row.values | {"env_frames": 4_000}) for row in rows))


@pytest.mark.parametrize("height", [23, 19, 16, 12, 10])
def test_every_gate_is_shown_on_a_terminal_with_few_lines(screen: Screen, height: int) -> None:
    drawn = screen(gate("disk", "warned"), gate("loss", "tripped"), gate("actions", "warned"), height=height)
    assert all(mark in drawn for mark in ("▲ disk", "✖ loss", "▲ actions"))
    assert len(drawn.splitlines()) == height


@pytest.mark.parametrize("height", [23, 19])
def test_learning_is_shown_on_a_terminal_with_few_lines(
    screen: Screen, period: MakePeriod, height: int
) -> None:
    assert "0.012" in screen(*period(1_000, elapsed_seconds=4.0, loss=0.0123), height=height)


def test_a_path_in_a_notice_is_shown_whole(screen: Screen) -> None:
    path = "outputs/a_folder_with_a_long_name/pong_quick_seed1/checkpoints/step_000125000"
    drawn = screen(Notice(kind="checkpoint", step=1, env_frames=4, message=f"saved {path}"), height=30)
    notices = "".join(line.split("│")[1].strip() for line in drawn.splitlines()[18:-1])
    assert path in notices.replace("checkpoint  saved", "")


def test_scores_of_seven_digits_and_fast_updates_are_whole_at_80_columns(
    screen: Screen, row: MakeRow, period: MakePeriod
) -> None:
    rows = [
        replace(each, values=each.values | {"updates_per_second": 12_345.0})
        if each.table == "throughput_log" else each
        for each in period(1_000, elapsed_seconds=4.0)
    ]  # fmt: skip
    large = {"env_frames": 5e7, "mean_return": 1_234_567.0, "std_return": 123_456.0, "frame_caps": 1}
    scores = row("eval_log", **large, eval_type="final")
    drawn = screen(*rows, scores)
    assert "1.23M† 123k 0a1b2c3d" in " ".join(drawn.split())
    assert "updates/s  12.3k" in drawn
    assert "…" not in drawn.replace("≠", "").split("published")[0]


def test_figures_of_learning_are_next_to_their_names(screen: Screen, period: MakePeriod) -> None:
    values = {"loss": 0.0123, "mean_q": -0.5, "mean_abs_td_error": 0.25, "grad_norm": 12.345, "epsilon": 0.1}
    text = screen(*period(1_000, elapsed_seconds=4.0, **values))
    named = re.findall(r"│ (loss|mean Q|TD error|grad norm|epsilon) +(\S+)", text)
    assert dict(named) == {
        "loss": "0.012", "mean Q": "-0.500", "TD error": "0.250", "grad norm": "12.35", "epsilon": "0.100",
    }  # fmt: skip


def test_figures_of_the_replay_are_next_to_their_names(screen: Screen, row: MakeRow) -> None:
    named = re.findall(
        r"│ (size|age|effective|β|weight|terminal) +(\S+)", screen(row("replay_log", **REPORT))
    )
    assert dict(named) == {
        "size": "980k", "age": "412k", "effective": "45%", "β": "0.448", "weight": "0.623",
        "terminal": "0.4%",
    }  # fmt: skip


def test_best_return_is_the_highest_of_all_episodes(screen: Screen, row: MakeRow) -> None:
    returns = (-20.0, -18.0, *[-19.0] * 12)  # the best one is none of the latest twelve
    episodes = [row("train_log", episode_number=n, episode_return=each) for n, each in enumerate(returns, 1)]
    assert re.search(r"best +-18\.0 ", screen(*episodes))


def test_number_of_episodes_is_that_of_the_run(screen: Screen, row: MakeRow) -> None:
    assert re.search(r"episodes +1,235 ", screen(row("train_log", episode_number=1_235)))


def test_history_of_the_rolling_mean_is_as_wide_as_its_panel(screen: Screen, period: MakePeriod) -> None:
    rows = [row for n in range(40) for row in period(1_000 * n, elapsed_seconds=n, rolling_return=n)]
    assert max(map(len, re.findall("[▁▂▃▄▅▆▇█]+", screen(*rows)))) == 22


def test_figures_of_an_actor_are_below_their_titles(screen: Screen) -> None:
    figures = {
        "frames_per_second": 1_234.0, "epsilon": 0.25, "lag_updates": 56.0, "dropped_steps": 7, "restarts": 3,
    }  # fmt: skip
    lines = [line.strip("│").split() for line in screen(actors_report(2, **figures), height=40).splitlines()]
    titles = ["actor", "state", "frames/s", "ε", "lag", "dropped", "restarts"]
    assert lines[lines.index(titles) + 1] == ["0", "running", "1.23k", "0.25", "56", "7", "3"]
