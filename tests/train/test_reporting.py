import copy
import math
import time
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest
from tiny import begun, ticks_of, tiny_spec

from atari_dqn.agent.losses import UPDATE_METRICS as METRICS
from atari_dqn.clock import Clock
from atari_dqn.telemetry.columns import column_names
from atari_dqn.telemetry.events import Row
from atari_dqn.train.episodes import EpisodeTracker
from atari_dqn.train.loop import Iteration, q_learning
from atari_dqn.train.reporter import Reporter, UpdateMeter
from atari_dqn.train.stopwatch import Stopwatch
from atari_dqn.train.throughput import Throughput
from atari_dqn.types import StepBatch


def step(envs: int = 1, *, reward: float = 0.0, over=(), capped=(), lost=(), first=()) -> StepBatch:
    def flags(of) -> np.ndarray:
        return np.isin(np.arange(envs), of)

    return StepBatch(
        frame=np.zeros((envs, 1, 1), dtype=np.uint8), reward=np.full(envs, reward), terminated=flags(over),
        truncated=flags(capped), life_lost=flags(lost), first=flags(first),
    )  # fmt: skip


def measured(**values: float) -> np.ndarray:
    """Return the metrics of an update with these values, and 0 otherwise."""
    return np.array([[values.get(name, 0.0) for name in METRICS]], dtype=np.float32)


class GivenUpdates:
    """Updates with metrics given by a test."""

    def __init__(self) -> None:
        self.rows: list[np.ndarray] = []

    def arrived(self) -> np.ndarray:
        rows, self.rows = self.rows, []
        return np.concatenate([np.zeros((0, len(METRICS)), dtype=np.float32), *rows])

    all = arrived


def make_reporter(clock: Clock, *, envs: int = 1, period: int = 10, rolling: int = 3) -> Reporter:
    return Reporter(
        clock, envs=envs, update_period_steps=period, rolling_episodes=rolling, updates=GivenUpdates()
    )


def report(
    reporter: Reporter, clock: Clock, steps: StepBatch, updates=(), epsilon: float | np.ndarray = 0.5
) -> list[Row]:
    clock.advance(steps=int(np.count_nonzero(~steps.first)), updates=len(updates))
    reporter._updates.rows = list(updates)
    return list(reporter.rows(Iteration(epsilon, steps, len(updates)), replay_transitions=7))


def test_return_is_the_sum_of_unclipped_rewards() -> None:
    tracker = EpisodeTracker(1)
    tracker.add_step(step(reward=200.0))
    (episode,) = tracker.add_step(step(reward=-7.5, over=[0]))
    assert (episode.episode_return, episode.length_steps) == (192.5, 2)


def test_episode_goes_on_over_a_lost_life() -> None:
    tracker = EpisodeTracker(1)
    assert tracker.add_step(step(reward=1.0, lost=[0])) == []
    (episode,) = tracker.add_step(step(reward=1.0, over=[0], lost=[0]))
    assert episode.episode_return == 2.0


def test_reset_row_lengthens_no_episode() -> None:
    tracker = EpisodeTracker(1)
    tracker.add_step(step(over=[0]))
    tracker.add_step(step(first=[0]))
    tracker.add_step(step(reward=1.0))
    (episode,) = tracker.add_step(step(reward=1.0, over=[0]))
    assert (episode.length_steps, episode.episode_return) == (2, 2.0)


def test_steps_added_at_once_sum_as_steps_one_at_a_time() -> None:
    rewards = np.random.Generator(np.random.PCG64(1)).normal(size=(90, 1))  # their sum rounds by its order
    first = np.arange(90)[:, None] == 40
    none = np.zeros((90, 1), dtype=np.bool_)
    steps = StepBatch(
        frame=np.zeros((90, 1, 1, 1), dtype=np.uint8), reward=rewards, terminated=none, truncated=none,
        life_lost=none, first=first,
    )  # fmt: skip
    at_once, one_at_a_time = EpisodeTracker(3), EpisodeTracker(3)
    for tracker in (at_once, one_at_a_time):
        tracker.add_step(step(3, reward=0.1))
    at_once.add_steps(steps, first_env=1)
    for number in range(90):
        one_at_a_time.add_step(steps[number], first_env=1)
    assert at_once.returns.tolist() == one_at_a_time.returns.tolist()
    assert at_once.length_steps.tolist() == one_at_a_time.length_steps.tolist() == [1, 90, 1]


def test_envs_keep_episodes_of_their_own() -> None:
    tracker = EpisodeTracker(3)
    tracker.add_step(step(3, reward=1.0, over=[1]))
    ended = tracker.add_step(step(3, reward=1.0, over=[0], capped=[2]))
    assert [(episode.slot, episode.episode_return) for episode in ended] == [(0, 2.0), (2, 2.0)]


def test_end_reason_tells_a_finished_game_from_one_that_was_cut() -> None:
    ended = EpisodeTracker(2).add_step(step(2, over=[0], capped=[1]))
    assert [episode.end_reason for episode in ended] == ["game_over", "frame_cap"]


@pytest.mark.fault("D02")
def test_rows_of_a_real_run_hold_exactly_the_declared_columns() -> None:
    with begun(tiny_spec("training.total_frames=600")) as training:
        rows = [
            row
            for iteration in q_learning(training)
            for row in training.reporter.rows(iteration, replay_transitions=training.replay.num_transitions)
        ]
    assert {(row.table, tuple(row.values)) for row in rows if row.table == "train_log"} == {
        ("train_log", column_names("train_log"))
    }
    assert {tuple(sorted(row.values)) for row in rows if row.table == "update_log"} == {
        tuple(sorted(column_names("update_log")))
    }


@pytest.mark.fault("D02")
def test_every_metric_of_a_learning_period_is_a_number() -> None:
    with begun(tiny_spec("training.total_frames=600")) as training:
        rows = [
            row
            for iteration in q_learning(training)
            for row in training.reporter.rows(iteration, replay_transitions=training.replay.num_transitions)
            if row.table == "update_log"
        ]
    assert all(math.isfinite(value) for value in rows[-1].values.values())


def test_rows_of_a_period_come_at_its_multiples() -> None:
    clock = Clock(frame_skip=4, prefill_steps=0)
    reporter = make_reporter(clock, period=10)
    rows = [row for _ in range(35) for row in report(reporter, clock, step())]
    assert [(row.values["step"], row.values["env_frames"]) for row in rows] == [(10, 40), (20, 80), (30, 120)]


def test_envs_that_jump_over_a_multiple_give_one_row_for_it() -> None:
    clock = Clock(frame_skip=4, prefill_steps=0)
    reporter = make_reporter(clock, envs=8, period=10)
    rows = [row for _ in range(5) for row in report(reporter, clock, step(8))]
    assert [row.values["step"] for row in rows] == [16, 24, 32, 40]


def test_rolling_mean_is_over_the_last_episodes() -> None:
    clock = Clock(frame_skip=4, prefill_steps=0)
    reporter = make_reporter(clock, period=5, rolling=3)
    rows = [report(reporter, clock, step(reward=reward, over=[0])) for reward in (1.0, 2.0, 3.0, 4.0, 8.0)]
    assert rows[-1][-1].values["rolling_return"] == 5.0


def test_rolling_mean_is_empty_before_the_first_episode_ends() -> None:
    clock = Clock(frame_skip=4, prefill_steps=0)
    (row,) = report(make_reporter(clock, period=1), clock, step())
    assert math.isnan(row.values["rolling_return"])


def test_episode_row_counts_frames_by_the_frame_skip() -> None:
    clock = Clock(frame_skip=3, prefill_steps=0)
    reporter = make_reporter(clock)
    report(reporter, clock, step())
    (row,) = report(reporter, clock, step(over=[0]))
    assert (row.values["episode_length_steps"], row.values["episode_length_frames"]) == (2, 6)


def test_period_reports_means_and_the_largest_value() -> None:
    meter = UpdateMeter()
    meter.add(measured(loss=1.0, max_q=-5.0, grad_norm=2.0))
    meter.add(measured(loss=2.0, max_q=-3.0, grad_norm=4.0))
    taken = meter.take()
    assert (taken["loss"], taken["max_q"], taken["grad_norm"], taken["max_grad_norm"]) == (
        1.5,
        -3.0,
        3.0,
        4.0,
    )


@pytest.mark.fault("D03")
@pytest.mark.parametrize("place", [0, 1, 2])
def test_nan_in_any_update_reaches_the_periods_row(place: int) -> None:
    meter = UpdateMeter()
    for update in range(3):
        meter.add(measured(loss=math.nan, max_q=math.nan) if update == place else measured())
    taken = meter.take()
    assert math.isnan(taken["loss"])
    assert math.isnan(taken["max_q"])


def test_period_forgets_the_one_before() -> None:
    meter = UpdateMeter()
    meter.add(measured(loss=math.nan, max_q=100.0))
    meter.take()
    meter.add(measured(loss=2.0, max_q=1.0))
    taken = meter.take()
    assert (taken["loss"], taken["max_q"]) == (2.0, 1.0)


def test_period_without_an_update_reports_nothing() -> None:
    assert all(math.isnan(value) for value in UpdateMeter().take().values())


@pytest.mark.fault("P11")
def test_sums_are_kept_in_double_precision() -> None:
    meter = UpdateMeter()
    meter.add(measured(loss=2.0**25))
    for _ in range(7):
        meter.add(measured(loss=1.0))
    assert meter.take()["loss"] == (2**25 + 7) / 8


@pytest.mark.fault("W03")
def test_loaded_reporter_goes_on_as_the_saved_one_would() -> None:
    clock = Clock(frame_skip=4, prefill_steps=0)
    saved = make_reporter(clock, envs=2)
    for number in range(7):
        report(saved, clock, step(2, reward=1.0, over=[number % 3]), [measured(loss=float(number))])
    other_clock = Clock(frame_skip=4, prefill_steps=0, steps=clock.steps, updates=clock.updates)
    loaded = make_reporter(other_clock, envs=2)
    loaded.load_state_dict(copy.deepcopy(saved.state_dict()))
    rows = [
        [report(reporter, of_it, step(2, reward=1.0, over=[number % 3])) for number in range(9)]
        for reporter, of_it in ((saved, clock), (loaded, other_clock))
    ]
    assert repr(rows[0]) == repr(rows[1])  # as text, in which NaN equals NaN


class Hands:
    """A clock that the test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def pass_seconds(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    return Hands(monkeypatch)


def spend(watch: Stopwatch, hands: Hands, part: str, seconds: float) -> None:
    with watch.part(part):
        hands.pass_seconds(seconds)


def lap(watch: Stopwatch) -> tuple[float, dict[str, float]]:
    """Return the seconds of a lap, and those of the parts that are not 0."""
    total, parts = watch.lap()
    return total, {part: seconds for part, seconds in parts.items() if seconds}


def test_stopwatch_adds_up_each_part(hands: Hands) -> None:
    watch = Stopwatch()
    spend(watch, hands, "act", 1.0)
    spend(watch, hands, "learn", 2.0)
    spend(watch, hands, "act", 4.0)
    hands.pass_seconds(1.0)
    assert lap(watch) == (8.0, {"act": 5.0, "learn": 2.0})


def test_stopwatch_begins_each_lap_at_nothing(hands: Hands) -> None:
    watch = Stopwatch()
    spend(watch, hands, "act", 3.0)
    watch.lap()
    hands.pass_seconds(1.0)
    assert lap(watch) == (1.0, {})


def test_stopwatch_leaves_out_what_is_paused(hands: Hands) -> None:
    watch = Stopwatch()
    hands.pass_seconds(2.0)
    with watch.paused():
        hands.pass_seconds(100.0)
    hands.pass_seconds(1.0)
    assert watch.lap()[0] == 3.0


def test_stopwatch_counts_a_part_that_fails(hands: Hands) -> None:
    watch = Stopwatch()
    with suppress(ZeroDivisionError), watch.part("act"):
        hands.pass_seconds(2.0)
        _ = 1 / 0
    assert lap(watch)[1] == {"act": 2.0}


def test_a_part_within_another_counts_for_itself_alone(hands: Hands) -> None:
    watch = Stopwatch()
    with watch.part("learn"):
        hands.pass_seconds(1.0)
        spend(watch, hands, "optimize", 2.0)
        hands.pass_seconds(0.5)
        spend(watch, hands, "optimize", 4.0)
    hands.pass_seconds(1.0)
    assert lap(watch) == (8.5, {"optimize": 6.0, "learn": 1.5})


def test_step_of_the_optimizer_is_timed_apart_from_learning() -> None:
    with begun(tiny_spec()) as training:
        ticks_of(training, 80)
        _, parts = training.stopwatch.lap()
    assert training.learner.updates
    assert parts["optimize"] > 0
    assert parts["learn"] > 0


SECONDS = {
    "act": 1.0, "emulate": 1.5, "store": 0.5, "sample": 0.25, "transfer": 0.25, "learn": 3.0, "optimize": 1.0,
}  # fmt: skip


def throughput_row(hands: Hands) -> Row:
    watch = Stopwatch()
    envs = SimpleNamespace(busy_seconds=10.0, num_processes=2)
    throughput = Throughput(watch, envs)
    throughput.begin(env_frames=400, updates=25)
    for part, seconds in SECONDS.items():
        spend(watch, hands, part, seconds)
    hands.pass_seconds(0.5)
    envs.busy_seconds = 16.0
    values = {"step": 300, "env_frames": 1_200, "updates": 75}
    return throughput.row(Row(table="update_log", values=values), elapsed_seconds=99.0)


@pytest.mark.fault("P06")
def test_shares_of_training_time_sum_to_one(hands: Hands) -> None:
    values = throughput_row(hands).values
    shares = [values[f"{part}_share"] for part in (*SECONDS, "other")]
    assert shares == [0.125, 0.1875, 0.0625, 0.03125, 0.03125, 0.375, 0.125, 0.0625]


def test_emulators_are_busy_for_the_mean_of_their_times(hands: Hands) -> None:
    assert throughput_row(hands).values["emulators_busy_share"] == 0.375  # 6 of 2 × 8 seconds


def test_speed_is_of_the_period_alone(hands: Hands) -> None:
    values = throughput_row(hands).values
    assert (values["frames_per_second"], values["updates_per_second"]) == (100.0, 6.25)


def test_throughput_row_holds_exactly_the_declared_columns(hands: Hands) -> None:
    assert tuple(throughput_row(hands).values) == column_names("throughput_log")


SPECTRUM = np.array([0.4, 0.05, 0.001])


def test_episode_has_the_epsilon_of_its_environment() -> None:
    clock = Clock(frame_skip=4, prefill_steps=0)
    reporter = make_reporter(clock, envs=3)
    rows = report(reporter, clock, step(3, over=[0, 2]), epsilon=SPECTRUM)
    found = {row.values["environment"]: row.values["epsilon"] for row in rows if row.table == "train_log"}
    assert found == {0: 0.4, 2: 0.001}


def test_epsilon_of_a_period_is_the_mean_over_the_environments() -> None:
    clock = Clock(frame_skip=4, prefill_steps=0)
    reporter = make_reporter(clock, envs=3, period=3)
    (row,) = report(reporter, clock, step(3), epsilon=SPECTRUM)
    assert row.values["epsilon"] == pytest.approx(0.451 / 3)


@pytest.mark.fault("M03")
def test_epsilon_is_1_in_the_prefill_and_then_a_spectrum() -> None:
    spec = tiny_spec("exploration.kind=spectrum", "env.num_envs=2", "training.total_frames=400")
    with begun(spec) as training:
        found = [iteration.epsilon for iteration in ticks_of(training)]
    assert found[0] == 1.0
    assert found[-1].tolist() == pytest.approx([0.4, 0.4**8])
