import json
import multiprocessing
import os
import pickle
import resource
import shutil
import signal
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest
from full_disk import largest_file
from tiny import CPU, FEW_STEPS, run

from atari_dqn.envs.processes import ENDING_SIGNALS
from atari_dqn.errors import DamagedError, DiskFullError, InfrastructureError, InterruptedRunError, UserError
from atari_dqn.machine.hardware import Hardware
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory
from atari_dqn.telemetry.columns import TABLES, column_names
from atari_dqn.telemetry.events import Event, Notice, Progress, Row, Sink
from atari_dqn.train import launch, session
from atari_dqn.train.interrupt import SignalGuard

SHORT = "training.total_frames=800"
REPEATED = sorted(TABLES.keys() - {"throughput_log"})
"""Tables that do not depend on the speed of the machine."""
OF_MEMORY = {"memory_log"}
"""Without a row here: tests/train/test_memory_log.py has the agents that write it."""


class SignalAt:
    """A view that sends a signal, SIGTERM by default, at the first event that `when` selects."""

    def __init__(self, when: Callable[[Event], bool], number: int = signal.SIGTERM) -> None:
        self.when, self.sent, self.number = when, False, number

    def handle(self, event: Event) -> None:
        if not self.sent and self.when(event):
            self.sent = True
            signal.raise_signal(self.number)

    def close(self) -> None:
        pass


def resume(path: Path, total_frames: int | None = None, *, views: Sequence[Sink] = ()):
    return launch.resume(RunDirectory.open(path), device=CPU, views=views, total_frames=total_frames)


def notices(path: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in (path / "events.jsonl").read_text().splitlines()]


def table(path: Path, name: str) -> pl.DataFrame:
    return pl.read_csv((path / f"{name}.csv").read_bytes())  # of a path with brackets it makes a pattern


@pytest.fixture(scope="module")
def whole(tiny_run: Callable[..., Path]) -> Path:
    """An uninterrupted run."""
    return tiny_run(SHORT)


def in_training(event: Event) -> bool:
    return isinstance(event, Row) and event.table == "update_log" and event.values["step"] >= 100


def in_full_evaluation(event: Event) -> bool:
    return isinstance(event, Progress) and event.activity == "full evaluation" and event.done > 0


def in_final_evaluation(event: Event) -> bool:
    return isinstance(event, Progress) and event.activity == "final evaluation" and event.done > 0


def at_a_checkpoint(event: Event) -> bool:
    return isinstance(event, Notice) and event.kind == "checkpoint"


class Recorder:
    """A view that records every event."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def handle(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        pass


def test_evaluation_is_announced_before_its_first_game(tmp_path: Path) -> None:
    handled = Recorder()
    run(tmp_path / "run", *FEW_STEPS, views=[handled])
    final = [event for event in handled.events if isinstance(event, Progress) and "final" in event.activity]
    assert [event.done for event in final] == list(range(final[0].total + 1))


MORE = (in_final_evaluation, at_a_checkpoint)


@pytest.mark.fault("W03")
@pytest.mark.parametrize(
    "when",
    [in_training, *(pytest.param(each, marks=pytest.mark.slow) for each in (in_full_evaluation, *MORE))],
)
def test_interrupted_and_resumed_run_equals_one_that_was_not(tmp_path: Path, whole: Path, when) -> None:
    path = tmp_path / "run"
    with pytest.raises(InterruptedRunError, match="SIGTERM"):
        run(path, SHORT, views=[SignalAt(when)])
    resume(path)
    summaries = [json.loads((where / "summary.json").read_text()) for where in (path, whole)]
    for summary in summaries:
        del summary["elapsed_seconds"], summary["summary_sha256"]
    assert summaries[0] == summaries[1]
    assert [(path / f"{name}.csv").read_bytes() for name in REPEATED] == [
        (whole / f"{name}.csv").read_bytes() for name in REPEATED
    ]
    assert [
        {key: entry[key] for key in ("step", "path", "eval_score")}
        for entry in json.loads((path / "checkpoints/catalog.json").read_text())["entries"]
        if entry["eval_score"] is not None
    ] == [
        {key: entry[key] for key in ("step", "path", "eval_score")}
        for entry in json.loads((whole / "checkpoints/catalog.json").read_text())["entries"]
    ]


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, InterruptedRunError]:
    """A run that was interrupted in training, and its error."""
    path = tmp_path_factory.mktemp("interrupted") / "run"
    with pytest.raises(InterruptedRunError) as caught:
        run(path, SHORT, views=[SignalAt(in_training)])
    return path, caught.value


def test_interruption_has_the_exit_code_of_its_signal(interrupted: tuple[Path, InterruptedRunError]) -> None:
    assert interrupted[1].exit_code == 143


def test_interruption_is_reported_and_saved(interrupted: tuple[Path, InterruptedRunError]) -> None:
    assert notices(interrupted[0])[-2:] == ["checkpoint", "interrupted"]


def at_the_notice(kind: str) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, Notice) and event.kind == kind


def test_interruption_before_the_first_step_of_a_run_saves_it(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(InterruptedRunError, match="SIGINT") as caught:
        run(path, *FEW_STEPS, views=[SignalAt(at_the_notice("started"), signal.SIGINT)])
    assert caught.value.__notes__ == [f"saved at 0 frames; `dqn resume {path}` continues"]
    assert resume(path)["env_frames"] == 80


def test_interruption_before_the_first_step_of_a_resume_saves_it(
    tmp_path: Path, interrupted: tuple[Path, InterruptedRunError]
) -> None:
    path = Path(shutil.copytree(interrupted[0], tmp_path / "run", symlinks=True))
    with pytest.raises(InterruptedRunError, match="SIGINT"):
        resume(path, views=[SignalAt(at_the_notice("resumed"), signal.SIGINT)])
    assert notices(path)[-2:] == ["checkpoint", "interrupted"]


def test_second_signal_has_its_usual_effect_once_a_training_has_ended(tmp_path: Path) -> None:
    at_the_end = [SignalAt(at_the_notice("finished"), signal.SIGINT) for _ in range(2)]
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", *FEW_STEPS, views=at_the_end)
    assert (tmp_path / "run" / "summary.json").exists()


WORKER = ("env.num_envs=1", "system.workers=1")


class StopsWorkers:
    """A view that stops the workers (SIGSTOP) and sends SIGINT in training."""

    def __init__(self) -> None:
        self.stopped: list[int] = []

    def handle(self, event: Event) -> None:
        if not self.stopped and in_training(event):
            self.stopped = [child.pid or 0 for child in multiprocessing.active_children()]
            for pid in self.stopped:
                os.kill(pid, signal.SIGSTOP)
            signal.raise_signal(signal.SIGINT)

    def close(self) -> None:
        pass


@pytest.mark.slow
def test_interruption_saves_a_run_whose_worker_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Path
) -> None:
    monkeypatch.setattr("atari_dqn.envs.pool._WAIT_SECONDS", 0.1)
    with pytest.raises(InterruptedRunError, match="SIGINT"):
        run(tmp_path / "run", SHORT, *WORKER, views=[StopsWorkers()])
    resume(tmp_path / "run")
    assert digest_of(tmp_path / "run") == digest_of(whole)


@pytest.mark.slow
def test_interruption_says_what_is_saved_where_a_worker_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atari_dqn.envs.pool._WAIT_SECONDS", 0.1)
    monkeypatch.setattr("atari_dqn.envs.worker_handle.Worker.resume", lambda worker: None)
    path = tmp_path / "run"
    with pytest.raises(InfrastructureError, match=r"worker 0 .* after the run was to end; .* starts again"):
        run(path, SHORT, *WORKER, views=[StopsWorkers()])
    assert multiprocessing.active_children() == []


def test_guard_notes_that_the_terminal_hung_up() -> None:
    with SignalGuard() as guard:
        signal.raise_signal(signal.SIGHUP)
        assert guard.received == signal.SIGHUP


def test_guard_leaves_a_signal_ignored_that_was() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with SignalGuard() as guard:
            signal.raise_signal(signal.SIGHUP)
            assert guard.received is None
    finally:
        signal.signal(signal.SIGHUP, before)


def test_guard_gives_the_second_signal_to_whom_it_belonged() -> None:
    with SignalGuard() as guard:
        signal.raise_signal(signal.SIGINT)
        assert guard.received == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("other", [signal.SIGHUP, signal.SIGTERM])
def test_guard_survives_what_a_closed_terminal_sends_after_its_hangup(other: signal.Signals) -> None:
    with SignalGuard() as guard:
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(other)
        signal.raise_signal(signal.SIGHUP)
        assert guard.received == signal.SIGHUP


def test_guard_leaves_the_handlers_as_they_were() -> None:
    before = [signal.getsignal(number) for number in ENDING_SIGNALS]
    with SignalGuard():
        pass
    assert [signal.getsignal(number) for number in ENDING_SIGNALS] == before


@pytest.mark.slow
def test_extended_run_equals_one_with_that_budget(tmp_path: Path, whole: Path) -> None:
    run(tmp_path / "run", "training.total_frames=640")
    assert resume(tmp_path / "run", 800)["state_digest"] == digest_of(whole)
    assert "extended" in notices(tmp_path / "run")


def digest_of(path: Path) -> str:
    digest: str = json.loads((path / "summary.json").read_text())["state_digest"]
    return digest


def test_finished_run_is_not_resumed_without_a_budget(copied: Path) -> None:
    with pytest.raises(UserError, match=r"is complete at 800 frames; `dqn resume .* --frames N`"):
        resume(copied)


@pytest.mark.parametrize("frames", [400, 800])
def test_budget_that_is_spent_is_refused(copied: Path, frames: int) -> None:
    with pytest.raises(
        UserError, match=rf"--frames {frames}: the budget is 800 frames already; expected more"
    ):
        resume(copied, frames)


def test_budget_that_was_played_already_is_refused(tmp_path: Path) -> None:
    run(tmp_path / "run", *FEW_STEPS, "training.total_frames=82")  # 21 steps of 4 frames
    with pytest.raises(UserError, match="--frames 83: the run has played 84 frames; expected more"):
        resume(tmp_path / "run", 83)


def test_run_whose_checkpoint_is_damaged_is_not_resumed(
    tmp_path: Path, interrupted: tuple[Path, InterruptedRunError]
) -> None:
    shutil.copytree(interrupted[0], tmp_path / "run", symlinks=True)
    (tmp_path / "run/checkpoints/latest/state.json").write_text("{}")
    with pytest.raises(DamagedError, match=r"state\.json"):
        resume(tmp_path / "run")


def test_evaluations_come_at_their_periods(whole: Path) -> None:
    rows = table(whole, "eval_log").select("eval_type", "env_frames").rows()
    assert rows == [("light", 300), ("full", 600), ("final", 800)]


def test_summary_tells_the_last_score_and_the_best(whole: Path) -> None:
    summary = json.loads((whole / "summary.json").read_text())
    scored = table(whole, "eval_log").filter(pl.col("eval_type") != "light")
    assert summary["last"]["mean_return"] == scored["mean_return"][-1]
    assert summary["best"]["mean_return"] == scored["mean_return"].max()
    assert summary["best"]["of_evaluations"] == 2


def test_digest_in_the_summary_is_that_of_the_last_checkpoint(whole: Path) -> None:
    manifest = json.loads((whole / "checkpoints/latest/manifest.json").read_text())
    assert manifest["state_digest"] == digest_of(whole)


def test_every_score_that_is_written_carries_a_fingerprint_whose_words_are_in_provenance(whole: Path) -> None:
    words = json.loads((whole / "provenance.json").read_text())["protocols"]
    summary = json.loads((whole / "summary.json").read_text())
    catalog = json.loads((whole / "checkpoints/catalog.json").read_text())["entries"]
    events = [json.loads(line) for line in (whole / "events.jsonl").read_text().splitlines()]
    written = {
        *table(whole, "eval_log")["protocol"],
        *(summary[which]["protocol_digest"] for which in ("last", "best")),
        *(entry["protocol"] for entry in catalog if entry["eval_score"] is not None),
        *(event["data"]["protocol"] for event in events if event["kind"] == "evaluation"),
    }
    assert written == set(words)
    assert words[summary["best"]["protocol_digest"]]["checkpoint"] == "best"


@pytest.mark.fault("D02")
@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_table_of_a_run_has_its_columns_and_rows(whole: Path, name: str) -> None:
    found = table(whole, name)
    assert tuple(found.columns) == column_names(name)
    assert (len(found) > 1) == (name not in OF_MEMORY)


@pytest.mark.fault("D02")
def test_no_column_stays_empty(whole: Path) -> None:
    empty = [
        f"{name}.{column}"
        for name in TABLES.keys() - OF_MEMORY
        for column in column_names(name)
        if table(whole, name)[column].is_null().all()
    ]
    # plain DQN predicts values: tests/train/test_prediction_log.py has the networks that fill these
    of_distributions = ("std_return", "lowest_atom_mass", "highest_atom_mass", "crossed_share")
    assert empty == [f"prediction_log.{column}" for column in of_distributions]


@pytest.mark.fault("D09")
def test_emulator_frames_are_steps_times_the_frame_skip_everywhere(whole: Path) -> None:
    for name in TABLES.keys() - OF_MEMORY:
        rows = table(whole, name)
        assert (rows["env_frames"] == rows["step"] * 4).all()


@pytest.mark.fault("D07")
def test_frame_skip_of_three_counts_threes(tmp_path: Path) -> None:
    summary = run(
        tmp_path / "run", "training.total_frames=240", "replay.prefill_steps=16", "env.frame_skip=3"
    )
    assert (summary["step"], summary["env_frames"]) == (80, 240)
    episodes = table(tmp_path / "run", "train_log")
    assert (episodes["episode_length_frames"] == 3 * episodes["episode_length_steps"]).all()


def test_existing_directory_is_left_alone(copied: Path) -> None:
    before = (copied / "spec.toml").read_bytes()
    with pytest.raises(UserError, match=r"never overwritten"):
        run(copied, SHORT)
    assert (copied / "spec.toml").read_bytes() == before


def test_run_that_another_process_holds_is_not_resumed(copied: Path) -> None:
    held = RunDirectory.open(copied).locked()
    with held, pytest.raises(UserError, match="is in use by another process"):
        resume(copied, 1200)


def test_run_stopped_before_its_summary_is_not_evaluated_twice(copied: Path) -> None:
    (copied / "summary.json").unlink()
    resume(copied)
    assert table(copied, "eval_log")["eval_type"].to_list().count("final") == 1
    assert (copied / "summary.json").exists()


def test_resume_on_other_versions_says_it_may_differ(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atari_dqn.train.resume_exactness.versions", lambda: {"torch": "99.0"})
    resume(copied, 840)
    assert "inexact" in notices(copied)


def test_time_spent_on_a_run_goes_on_from_what_was_spent_before_a_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = chain([0.0], repeat(1_000.0))
    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    run(tmp_path / "run", *FEW_STEPS)
    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda: 5.0))
    assert resume(tmp_path / "run", 120)["elapsed_seconds"] == 1_000.0


def test_first_speed_after_a_resume_is_of_the_time_since(tmp_path: Path) -> None:
    run(tmp_path / "run", *FEW_STEPS, "logging.update_period_steps=10")
    resume(tmp_path / "run", 120)
    counts, speeds = (table(tmp_path / "run", name) for name in ("update_log", "throughput_log"))
    updates = counts["updates"][-1] - counts["updates"][-2]
    frames_per_update = speeds["frames_per_second"][-1] / speeds["updates_per_second"][-1]
    assert frames_per_update == pytest.approx((120 - 80) / updates)


def test_extended_run_does_not_play_its_final_evaluation_again(tmp_path: Path) -> None:
    run(tmp_path / "run", *FEW_STEPS, "evaluation.full_period_frames=80")
    resume(tmp_path / "run", 120)
    log = table(tmp_path / "run", "eval_log")
    assert log.select("env_frames", "eval_type").rows() == [(80, "final"), (120, "final")]


UNSAVED = "checkpoint.replay=false"


@pytest.mark.parametrize(("precision", "fast", "reported"), [
    ("bf16", False, True), ("bf16", True, False), ("bf16", None, False), ("fp32", False, False),
])  # fmt: skip
def test_run_in_a_format_that_the_cpu_emulates_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str, fast: bool | None, reported: bool
) -> None:
    monkeypatch.setattr(Hardware, "fast_bf16", fast)
    path = tmp_path / "run"
    run(path, f"learner.precision={precision}", *FEW_STEPS)
    assert ("slow" in notices(path)) is reported


def test_run_that_goes_on_where_its_format_is_emulated_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hardware, "fast_bf16", True)
    path = tmp_path / "run"
    run(path, "learner.precision=bf16", *FEW_STEPS)
    monkeypatch.setattr(Hardware, "fast_bf16", False)
    resume(path, 120)
    assert notices(path).count("slow") == 1


def test_run_without_a_saved_replay_says_on_resuming_that_it_differs(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(InterruptedRunError):
        run(path, SHORT, UNSAVED, views=[SignalAt(in_training)])
    resume(path)
    reported = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    (inexact,) = [line["message"] for line in reported if line["kind"] == "inexact"]
    assert "its replay was not saved (checkpoint.replay = false)" in inexact


@pytest.mark.slow
def test_run_without_a_saved_replay_learns_again_once_the_prefill_is_there(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(InterruptedRunError):
        run(path, UNSAVED, views=[SignalAt(in_training)])  # at step 100, with 8 updates made
    resume(path)
    rows = table(path, "update_log").select("step", "updates").rows()
    # 64 steps of prefill, then an update every 4 steps; none from step 100 to 164, where it begins again
    assert rows == [(50, 0), (100, 8), (150, 8), (200, 16), (250, 29), (300, 41)]


@pytest.mark.slow
def test_saving_the_replay_or_not_changes_nothing_that_is_learned(tmp_path: Path, whole: Path) -> None:
    assert run(tmp_path / "run", SHORT, UNSAVED)["state_digest"] == digest_of(whole)


def test_full_disk_ends_the_run_where_the_spec_says_stop(tmp_path: Path) -> None:
    with largest_file(100_000), pytest.raises(DiskFullError, match=r"the checkpoint takes about"):
        run(tmp_path / "run", SHORT)
    assert "final evaluation" not in (tmp_path / "run/events.jsonl").read_text()


class RoomAfter:
    """A view that frees disk space after the first checkpoint that failed."""

    def __init__(self) -> None:
        self._before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, self._before[1]))

    def handle(self, event: Event) -> None:
        if isinstance(event, Notice) and event.kind == "checkpoint failed":
            self.close()

    def close(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, self._before)


@pytest.mark.slow
def test_full_disk_does_not_end_the_run_where_the_spec_says_continue(tmp_path: Path, whole: Path) -> None:
    summary = run(tmp_path / "run", SHORT, "checkpoint.on_full_disk=continue", views=[RoomAfter()])
    assert notices(tmp_path / "run").count("checkpoint failed") == 1
    assert summary["state_digest"] == digest_of(whole)
    assert CheckpointStore(tmp_path / "run/checkpoints").latest().name == "step_000000200"


@pytest.mark.slow
def test_last_checkpoint_is_not_optional(tmp_path: Path) -> None:
    with largest_file(100_000), pytest.raises(DiskFullError):
        run(tmp_path / "run", SHORT, "checkpoint.on_full_disk=continue")
    assert not (tmp_path / "run/summary.json").exists()


def test_interrupt_of_another_process_arrives_as_what_it_was() -> None:
    arrived = pickle.loads(pickle.dumps(InterruptedRunError(signal.SIGTERM)))
    assert (str(arrived), arrived.exit_code) == ("interrupted by SIGTERM", 143)
