"""The checkpoint that is being written when a run fails, ends at once, saves the next one or was resumed."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from tiny import tiny_spec

from atari_dqn.clock import Clock
from atari_dqn.errors import DiskFullError, HaltedError
from atari_dqn.run.checkpoint.store import CheckpointStore, Saved
from atari_dqn.train.health import HealthMonitor
from atari_dqn.train.saving import Saving


class SlowStore:
    """A store that writes a checkpoint until `finish` is called."""

    def __init__(self) -> None:
        self.writing: int | None = None
        self.cancelled = False
        self.error: Exception | None = None
        self.leftovers: tuple[Path, ...] = ()
        self.rated = -1
        """The step of the newest checkpoint, which has a score."""

    def begin(self, *, step: int, replaces: bool, **_: Any) -> bool:
        self.writing = step
        is_saved = not (replaces and step == self.rated)
        self.rated = step
        return is_saved

    def finish(self) -> Saved | None:
        step, self.writing = self.writing, None
        if step is not None and self.error is not None:
            raise self.error
        if step is None:
            return None
        return Saved(step=step, state_digest="digest", leftovers=self.leftovers)

    def poll(self) -> Saved | None:
        return None

    def cancel(self) -> None:
        self.cancelled = True


class Sound:
    """Failure gates that find nothing."""

    def check_updates(self) -> None:
        pass


class Run:
    """A saving with its store, its clock and the messages that it reported."""

    def __init__(self) -> None:
        self.store, self.messages = SlowStore(), []
        self.clock = Clock(frame_skip=4, prefill_steps=0)
        self.saving = Saving(
            replace(tiny_spec().checkpoint, period_frames=400),
            self.clock,
            checkpoints=cast(CheckpointStore, self.store),
            health=cast(HealthMonitor, Sound()),
            notify=lambda kind, message, **_: self.messages.append(message),
            training=dict,
            bookkeeping=dict,
        )

    def begin_at(self, step: int) -> None:
        self.clock.steps = step
        self.saving.begin()


def fail(run: Run, error: type[BaseException]) -> None:
    """Fail with an error while the checkpoint of step 100 is being written."""
    with run.saving.finished():
        run.begin_at(100)
        raise error


def test_checkpoint_is_finished_and_reported_though_the_run_fails() -> None:
    run = Run()
    with pytest.raises(HaltedError):
        fail(run, HaltedError)
    assert (run.store.writing, run.messages) == (None, ["saved step 100"])


def test_error_of_the_run_is_not_replaced_by_one_of_its_checkpoint() -> None:
    run = Run()
    run.store.error = DiskFullError("no space left")
    with pytest.raises(HaltedError):
        fail(run, HaltedError)


def test_checkpoint_is_abandoned_if_the_process_must_exit() -> None:
    run = Run()
    with pytest.raises(KeyboardInterrupt):
        fail(run, KeyboardInterrupt)
    assert run.store.cancelled


def test_checkpoint_that_the_next_one_waits_for_is_reported() -> None:
    run = Run()
    run.begin_at(100)
    run.begin_at(200)
    assert run.messages == ["saved step 100"]


def test_files_of_an_earlier_checkpoint_that_cannot_be_removed_are_reported() -> None:
    run = Run()
    run.store.leftovers = (Path("step_1.removed"),)
    run.begin_at(100)
    run.saving.wait()
    assert run.messages[1:] == [
        "step_1.removed: an earlier checkpoint, whose files take space until they can be"
    ]


def test_period_that_passed_before_a_resume_saves_no_checkpoint() -> None:
    run = Run()
    run.clock.steps = 150
    run.saving.resume([])
    run.saving.begin_if_due()
    assert run.store.writing is None


def test_updates_since_a_checkpoint_with_a_score_are_said_not_to_be_saved() -> None:
    run = Run()
    run.begin_at(100)
    run.saving.wait()
    run.clock.updates += 3
    run.begin_at(100)
    assert run.messages[-1] == (
        "the checkpoint of step 100 keeps its state, which has a score or a mark; "
        "3 updates since are not saved"
    )


def test_updates_that_were_not_saved_are_counted_again_with_later_ones() -> None:
    run = Run()
    run.begin_at(100)
    run.saving.wait()
    for updates in (3, 2):
        run.clock.updates += updates
        run.begin_at(100)
        run.saving.wait()
    lost = [message for message in run.messages if message.endswith("are not saved")]
    assert [message.split("; ")[1] for message in lost] == [
        "3 updates since are not saved",
        "5 updates since are not saved",
    ]
