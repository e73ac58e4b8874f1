"""A training whose lease has been stolen ends at its next change of the run's files, before it makes it."""

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import tiny
from states import training_state

from atari_dqn.evaluation.progress import EvaluationKey, EvaluationProgress
from atari_dqn.run.checkpoint import removal, stages
from atari_dqn.run.checkpoint.rewind import rewind
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.leases import guard
from atari_dqn.run.leases.guard import LOST_EXIT_CODE, LeaseGuard
from atari_dqn.run.leases.lease import HeldLease, LeaseFolder
from atari_dqn.run.leases.owner import Owner
from atari_dqn.run.scores import EvaluationEpisode
from atari_dqn.telemetry.events import Notice
from atari_dqn.train import launch, run_session
from atari_dqn.train.run_sinks import RunSinks

ELSEWHERE = Owner(host="elsewhere", machine="another machine", pid=4, started=7)
NOTICE = Notice(kind="note", step=1, env_frames=4, message="a note")
GAME = EvaluationEpisode(episode_return=3.0, length_frames=40, end_reason="game_over")
KEY = EvaluationKey(
    weights_sha256="a", step=7, protocol="p", seed=1, device="cpu", torch_threads=1, kernels=(), versions={}
)

Files = dict[str, bytes | None]


class EndedError(BaseException):
    """In place of the end of the process."""


@dataclass
class Theft:
    """The lease under which this process trains the runs of a folder, and the theft of it."""

    folder: Path
    held: HeldLease
    files: Files | None = None
    """The files of the folder at the time of the theft."""

    def steal(self) -> None:
        leases = LeaseFolder(self.held.path.parent)
        assert leases.take(self.held.lease.name, ELSEWHERE, over=self.held.lease) is not None
        self.files = files_in(self.folder)

    def at_call_of(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with a theft before it."""

        def called(*args: Any, **options: Any) -> Any:
            self.steal()
            return function(*args, **options)

        return called


@pytest.fixture
def theft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Theft:
    leases, runs = tmp_path / "leases", tmp_path / "runs"
    leases.mkdir()
    runs.mkdir()
    held = LeaseFolder(leases).take("run", Owner.current())
    assert held is not None

    def end(code: int) -> None:
        assert code == LOST_EXIT_CODE
        raise EndedError

    monkeypatch.setattr(guard, "_guard", lambda: LeaseGuard(held.path, held.lease.token))
    monkeypatch.setattr(os, "_exit", end)
    return Theft(runs, held)


def files_in(folder: Path) -> Files:
    """Read the files and links of a folder, except unfinished ones, which are no part of a run."""
    paths = [path for path in folder.rglob("*") if ".partial" not in str(path)]
    return {str(path): contents(path) for path in paths}


def contents(path: Path) -> bytes | None:
    """Return the bytes of a file, or the target of a link; None for a folder."""
    if path.is_symlink():
        return os.fsencode(path.readlink())
    return path.read_bytes() if path.is_file() else None


@dataclass
class Work:
    """A run with a checkpoint of step 7, for one of the functions below, each of which changes it."""

    run: RunDirectory
    store: CheckpointStore
    theft: Theft
    monkeypatch: pytest.MonkeyPatch

    def save(self, step: int) -> None:
        self.store.save(
            step=step, training=training_state(step), bookkeeping={"saved": step}, eval_score=None
        )


@pytest.fixture
def work(theft: Theft, monkeypatch: pytest.MonkeyPatch) -> Work:
    run = RunDirectory.create(theft.folder / "run", "seed = 1\n", "0" * 64, {})
    work = Work(run, CheckpointStore(run.checkpoints), theft, monkeypatch)
    work.save(7)
    return work


def keep_a_game(work: Work) -> None:
    with closing(EvaluationProgress(work.run.evaluation_progress, KEY)) as progress:
        progress.add(0, GAME)
        work.theft.steal()
        progress.add(1, GAME)


def report(work: Work) -> None:
    with closing(RunSinks(work.run, [])) as sinks:
        work.theft.steal()
        sinks.handle(NOTICE)


def report_an_error(work: Work) -> None:
    with closing(RunSinks(work.run, [])) as sinks:
        work.theft.steal()
        sinks.handle_failure(NOTICE)


def remove_partial_files(work: Work) -> None:
    shutil.copytree(work.store.latest(), work.run.checkpoints / "step_000000009")  # not in the catalog
    work.theft.steal()
    work.store.tidy()


def go_back(work: Work) -> None:
    work.theft.steal()
    rewind(work.store, 5)


def save(work: Work) -> None:
    work.theft.steal()
    work.save(8)


def save_again(work: Work) -> None:
    work.theft.steal()
    work.store.save(step=7, training={}, bookkeeping={"saved": "again"}, eval_score=None)


def put_in_place(work: Work) -> None:
    work.monkeypatch.setattr(stages, "flush", work.theft.at_call_of(stages.flush))
    work.save(8)


def add_to_the_catalog(work: Work) -> None:
    place = stages.put_in_place

    def place_and_robbed(partial: Path, final: Path) -> None:
        place(partial, final)
        work.theft.steal()

    work.monkeypatch.setattr(stages, "put_in_place", place_and_robbed)
    work.save(8)


def robbed_at(work: Work, module: ModuleType, name: str) -> None:
    """Save, with the theft while the disk does not answer at a stage of the publishing."""
    work.save(8)
    work.monkeypatch.setattr(module, name, work.theft.at_call_of(getattr(module, name)))
    work.save(9)


def write_the_catalog(work: Work) -> None:
    robbed_at(work, stages, "read_catalog")


def update_the_links(work: Work) -> None:
    robbed_at(work, stages, "update_links")


def update_the_best_link(work: Work) -> None:
    robbed_at(work, stages, "best_first")


def prune(work: Work) -> None:
    robbed_at(work, stages, "prune")


def remove_an_earlier_checkpoint(work: Work) -> None:
    robbed_at(work, removal, "remove")


def fail_to_write(work: Work) -> None:
    """The thief has removed the unfinished checkpoint, which is no error of the disk."""

    def removed(*_: object) -> None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    work.monkeypatch.setattr(stages, "write_rest", work.theft.at_call_of(removed))
    work.save(8)


@pytest.mark.parametrize(
    "change",
    [
        keep_a_game, report, report_an_error, remove_partial_files, go_back, save, save_again,
        put_in_place, add_to_the_catalog, write_the_catalog, update_the_links, update_the_best_link, prune,
        remove_an_earlier_checkpoint, fail_to_write,
    ],
)  # fmt: skip
def test_nothing_is_changed_after_a_theft(work: Work, change: Callable[[Work], None]):
    with pytest.raises(EndedError):
        change(work)
    assert files_in(work.theft.folder) == work.theft.files


def test_a_save_after_a_theft_leaves_the_unfinished_checkpoint_of_the_thief(work: Work):
    unfinished = work.run.checkpoints / ".step_000000008.partial"
    unfinished.mkdir()
    with pytest.raises(EndedError):
        save(work)
    assert unfinished.exists()


def test_a_training_whose_lease_is_stolen_before_it_begins_ends(theft: Theft):
    theft.steal()
    with pytest.raises(EndedError):
        guard.end_with_owner()


def test_a_training_whose_lease_is_stolen_while_it_is_built_makes_no_run(theft: Theft):
    theft.steal()
    with pytest.raises(EndedError):
        tiny.run(theft.folder / "run", *tiny.FEW_STEPS)
    assert files_in(theft.folder) == {}


def test_a_resume_whose_lease_is_stolen_while_it_is_built_leaves_later_rows(
    theft: Theft, tiny_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
):
    run = RunDirectory(theft.folder / "run")
    shutil.copytree(tiny_run(*tiny.FEW_STEPS), run.path, symlinks=True)
    run.summary.unlink()
    with (run.tables / "update_log.csv").open("a") as log:
        log.write("a row after the checkpoint\n")
    monkeypatch.setattr(launch, "make_session", theft.at_call_of(run_session.make_session))
    with pytest.raises(EndedError):
        launch.resume(run, device=tiny.CPU, views=[], total_frames=None)
    assert files_in(theft.folder) == theft.files


def test_a_training_whose_lease_is_stolen_at_its_end_writes_no_summary(
    theft: Theft, monkeypatch: pytest.MonkeyPatch
):
    run = RunDirectory(theft.folder / "run")
    monkeypatch.setattr(run_session, "summary_of", theft.at_call_of(run_session.summary_of))
    with pytest.raises(EndedError):
        tiny.run(run.path, *tiny.FEW_STEPS)
    assert not run.summary.exists()
