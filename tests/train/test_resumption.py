"""The point from which a run resumes, and the requests that are refused before anything changes."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import CPU, FEW_STEPS, TINY_CATCH, run

from atari_dqn.envs.worker_handle import WorkerDiedError, WorkerFailedError
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.fast import acceleration
from atari_dqn.fast.cpu.library import kernels_for
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.run.checkpoint.rewind import refuse_empty_store
from atari_dqn.run.checkpoint.store import CheckpointStore
from atari_dqn.run.directory import RunDirectory
from atari_dqn.train import launch
from atari_dqn.train import resume_exactness as promises
from atari_dqn.train.learning import Learning
from atari_dqn.train.resume_point import ResumePoint, beginning_of, recorded_spec
from atari_dqn.train.resumption import resume_point

SHORT = ("training.total_frames=800", "checkpoint.keep_last=2")


@pytest.fixture(scope="module")
def whole(tiny_run: Callable[..., Path]) -> Path:
    """A complete run with the checkpoints of steps 150 and 200."""
    return tiny_run(*SHORT)


def resume(path: Path, **options: object):
    values = {"total_frames": None, **options}
    return launch.resume(RunDirectory.open(path), device=CPU, views=[], **values)


def tables(path: Path) -> dict[str, bytes]:
    return {table.name: table.read_bytes() for table in path.glob("*.csv") if table.stem != "throughput_log"}


def kept(path: Path) -> list[int]:
    return [entry.step for entry in CheckpointStore(path / "checkpoints").catalog()]


@pytest.mark.slow
def test_going_back_to_a_named_checkpoint_repeats_the_run(copied: Path, whole: Path) -> None:
    resume(copied, checkpoint="step_000000150", discard_later=True)
    assert tables(copied) == tables(whole)
    assert kept(copied) == [150, 200]


def test_later_checkpoint_that_is_whole_is_not_let_go_of_unasked(copied: Path, whole: Path) -> None:
    with pytest.raises(UserError, match=r"step_000000200 would be lost.*--discard-later"):
        resume(copied, checkpoint="step_000000150")
    assert kept(copied) == [150, 200]
    assert tables(copied) == tables(whole)


@pytest.mark.parametrize("target", [None, "step_000000150"])
def test_latest_is_the_newest_checkpoint_without_its_link_and_if_the_link_is_behind(
    copied: Path, target: str | None
) -> None:
    link = copied / "checkpoints/latest"
    link.unlink()
    if target is not None:
        link.symlink_to(target)
    assert resume_point(RunDirectory.open(copied), "latest").name == "step_000000200"


def test_latest_of_a_run_without_a_checkpoint_is_an_error(copied: Path) -> None:
    shutil.rmtree(copied / "checkpoints")
    (copied / "events.jsonl").write_text("")
    with pytest.raises(UserError, match="no checkpoint 'latest'; none is saved yet"):
        resume_point(RunDirectory.open(copied), "latest")


def test_a_run_keeps_the_deviations_that_it_recorded(copied: Path) -> None:
    record = json.loads((copied / "provenance.json").read_text())
    record["track"]["deviations"] = ["env.kind"]  # of a track that had other values then
    (copied / "provenance.json").write_text(json.dumps(record))
    assert recorded_spec(RunDirectory.open(copied)).deviations == ("env.kind",)


def test_unknown_checkpoint_is_refused_with_those_that_are_there(copied: Path) -> None:
    with pytest.raises(UserError, match=r"no checkpoint 'step_7'; there are: step_000000150, step_000000200"):
        resume(copied, checkpoint="step_7")


def remedy_of(path: Path) -> str:
    """Return the remedy in the refusal to resume a run."""
    with pytest.raises(DamagedError) as refusal:
        resume(path, total_frames=1_200)
    assert "step_000000200" in str(refusal.value).splitlines()[0]
    return str(refusal.value).partition("\n")[2]


def test_damaged_checkpoint_is_named_and_the_newest_whole_one_offered(copied: Path, whole: Path) -> None:
    (copied / "checkpoints/step_000000200/agent.pt").write_bytes(b"")
    command = f"dqn resume {copied} --checkpoint step_000000150"
    assert remedy_of(copied) == f"the newest intact checkpoint: `{command}`"
    resume(copied, checkpoint="step_000000150")  # a damaged agent may go
    assert tables(copied) == tables(whole)


def lose_replay(checkpoint: Path) -> None:
    shutil.rmtree(checkpoint / "replay")


def damage_state(checkpoint: Path) -> None:
    (checkpoint / "state.json").write_text("{}")


def damage_manifest(checkpoint: Path) -> None:
    (checkpoint / "manifest.json").write_text("{}")


def lose_manifest(checkpoint: Path) -> None:
    (checkpoint / "manifest.json").unlink()


@pytest.mark.parametrize("damage", [lose_replay, damage_state, damage_manifest, lose_manifest])
def test_going_back_to_an_intact_checkpoint_deletes_no_later_agent_unasked(
    copied: Path, whole: Path, damage: Callable[[Path], None]
) -> None:
    damage(copied / "checkpoints/step_000000200")
    command = f"dqn resume {copied} --checkpoint step_000000150 --discard-later"
    assert remedy_of(copied) == (
        f"restore it; or `{command}` goes back to the newest intact checkpoint and deletes "
        "step_000000200: copy the run first to keep its agent"
    )
    with pytest.raises(UserError, match=r"step_000000200 would be lost.*--discard-later"):
        resume(copied, checkpoint="step_000000150")
    assert (copied / "checkpoints/step_000000200/agent.pt").exists()
    assert tables(copied) == tables(whole)


@pytest.mark.slow
def test_remedy_that_deletes_a_later_agent_repeats_the_run(copied: Path, whole: Path) -> None:
    lose_replay(copied / "checkpoints/step_000000200")
    resume(copied, checkpoint="step_000000150", discard_later=True)
    assert tables(copied) == tables(whole)
    assert kept(copied) == [150, 200]


@pytest.mark.slow
def test_damaged_catalog_is_made_again_when_going_back(copied: Path) -> None:
    (copied / "checkpoints/catalog.json").write_text("[")
    resume(copied, checkpoint="step_000000200", total_frames=1_200)
    assert 200 in kept(copied)


def test_lost_checkpoints_are_refused_and_no_log_is_cut(copied: Path, whole: Path) -> None:
    shutil.rmtree(copied / "checkpoints")
    (copied / "checkpoints").mkdir()
    with pytest.raises(DamagedError, match=r"checkpoints: empty, although events\.jsonl lists checkpoints"):
        resume(copied, total_frames=1_200)
    assert tables(copied) == tables(whole)


def test_checkpoints_that_may_not_be_read_are_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory(tmp_path)
    run.checkpoints.mkdir()
    run.events.write_text('{"kind": "checkpoint"}\n')

    def refuse(folder: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(UserError, match=r"cannot read \S+/checkpoints: permission denied; make it readable"):
        refuse_empty_store(run)


def test_checkpoint_in_the_place_of_another_is_refused(copied: Path) -> None:
    folder = copied / "checkpoints"
    shutil.rmtree(folder / "step_000000200")
    shutil.copytree(folder / "step_000000150", folder / "step_000000200")
    with pytest.raises(DamagedError, match=r"manifest\.json: is of step 150, but the directory"):
        resume(copied, total_frames=1_200)


def test_extension_says_what_becomes_of_schedules(tmp_path: Path) -> None:
    run(tmp_path / "run", "training.total_frames=280", "toggles.prioritized=true")
    resume(tmp_path / "run", total_frames=320)
    lines = [json.loads(line) for line in (tmp_path / "run/events.jsonl").read_text().splitlines()]
    reported = [line for line in lines if line["kind"] == "extended"]
    assert [line["data"]["schedules"] for line in reported] == ["β still reaches 1 at frame 280"]


@pytest.mark.slow
def test_run_that_died_before_its_first_checkpoint_begins_again(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr("atari_dqn.train.saving.Saving.begin", die)
        with pytest.raises(KeyboardInterrupt):
            run(path, *SHORT)
    assert len((path / "update_log.csv").read_text().splitlines()) > 1
    resume(path)
    assert tables(path) == tables(whole)


@pytest.mark.slow
def test_run_belongs_to_one_process_until_that_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "run"
    command = [sys.executable, "-c", "from atari_dqn.cli import main; main()", "train", str(TINY_CATCH)]
    sets = ["--set", "training.total_frames=9_000_000", "--set", "checkpoint.period_frames=100"]
    with subprocess.Popen(
        [*command, *sets, "--run-dir", str(path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        text=True,
    ) as process:
        assert process.stdout is not None
        assert any("checkpoint: saved" in line for line in process.stdout)
        with pytest.raises(UserError, match="is in use by another process"):
            resume(path)
        process.send_signal(signal.SIGKILL)
    with RunDirectory.open(path).locked():
        assert kept(path)


def newest(path: Path) -> ResumePoint:
    return resume_point(RunDirectory.open(path))


def test_budget_of_the_frames_that_have_been_played_is_refused(whole: Path) -> None:
    overrun = replace(newest(whole), step=210)  # as with several environments, whose iterations are whole
    with pytest.raises(UserError, match="--frames 840: the run has played 840 frames; expected more"):
        overrun.budget(840)
    assert overrun.budget(841) == 841


def test_replay_that_was_not_saved_matters_only_from_a_checkpoint(tmp_path: Path) -> None:
    run(tmp_path / "run", *FEW_STEPS, "checkpoint.replay=false")
    beginning = beginning_of(RunDirectory.open(tmp_path / "run"))
    found = [[*promises.why_inexact(point, CPU)] for point in (newest(tmp_path / "run"), beginning)]
    assert [len(reasons) for reasons in found] == [1, 0]


@pytest.mark.parametrize("changed", [{"cpu_model": "Another"}, {"cpu_flags": ("another",)}], ids=str)
def test_another_processor_than_a_run_began_on_is_reported(
    whole: Path, monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any]
) -> None:
    here = replace(find_hardware(whole), **changed)
    monkeypatch.setattr(promises, "find_hardware", lambda _: here)
    (reported,) = promises.why_inexact(newest(whole), CPU)
    assert reported.startswith(f"processor {here.cpu_model}, it began on ")


def test_another_release_of_the_operating_system_is_not_reported(
    whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = {**promises.versions(), "platform": "another"}
    monkeypatch.setattr(promises, "versions", lambda: here)
    assert list(promises.why_inexact(newest(whole), CPU)) == []


@pytest.mark.parametrize(("deterministic", "reasons"), [("true", 0), ("false", 1)])
def test_run_whose_gpu_kernels_may_differ_promises_nothing(
    tmp_path: Path, deterministic: str, reasons: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "run", *FEW_STEPS, f"learner.deterministic={deterministic}")
    monkeypatch.setattr(promises, "_other_machine", lambda *_: iter(()))
    reported = list(promises.why_inexact(newest(tmp_path / "run"), torch.device("cuda", 0)))
    assert len(reported) == reasons
    assert all("learner.deterministic = false" in reason for reason in reported)


def test_other_kernels_than_a_run_began_with_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "run", *FEW_STEPS)
    began = ", ".join(kernels_for("fp32", promises.kernels_here())) or "none"
    monkeypatch.setattr(promises, "kernels_here", lambda: ("fp64 vectors",))
    reported = list(promises.why_inexact(newest(tmp_path / "run"), CPU))
    assert reported == [f"compiled kernels: fp64 vectors, it began with {began}"]


def test_kernels_that_a_run_does_not_use_may_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceleration, "kernels_here", lambda: ("fp32 vectors", "bf16 vectors", "portable"))
    run(tmp_path / "run", *FEW_STEPS)
    monkeypatch.setattr(promises, "kernels_here", lambda: ("fp32 vectors", "portable"))
    assert list(promises.why_inexact(newest(tmp_path / "run"), CPU)) == []


@pytest.fixture
def compiled_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with learner.compile = true; nothing is compiled, because the shape checks of tests cannot be."""
    monkeypatch.setattr(acceleration, "compiling", nullcontext)
    monkeypatch.setattr(torch, "compile", lambda work, **_: work)
    monkeypatch.setattr(launch, "compiler_version", lambda: "g++ 12")
    monkeypatch.setattr(promises, "compiler_version", lambda: "g++ 12")
    run(tmp_path / "run", *FEW_STEPS, "learner.compile=true")
    monkeypatch.setattr(promises, "_other_machine", lambda *_: iter(()))
    return tmp_path / "run"


def test_run_whose_gpu_kernels_were_compiled_promises_nothing(compiled_run: Path) -> None:
    reported = [
        list(promises.why_inexact(newest(compiled_run), device)) for device in (torch.device("cuda", 0), CPU)
    ]
    assert [len(reasons) for reasons in reported] == [1, 0]
    assert "learner.compile = true" in reported[0][0]


def test_another_compiler_of_a_compiled_run_is_reported(
    compiled_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promises, "compiler_version", lambda: "g++ 13")
    assert list(promises.why_inexact(newest(compiled_run), CPU)) == [
        "C++ compiler g++ 13, it began with g++ 12"
    ]


class EndsAtTheState:
    """A training in which an error is raised when a state is loaded."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def __call__(self, *_: object) -> None:
        raise self._error


@pytest.mark.parametrize(
    "error",
    [
        WorkerDiedError("worker 0 was killed by SIGKILL"),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
    ],
    ids=str,
)
def test_checkpoint_is_not_called_damaged_for_want_of_memory(
    copied: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(Learning, "load_state_dict", EndsAtTheState(error))
    with pytest.raises(type(error), match=str(error)):
        resume(copied, total_frames=1_000)


@pytest.mark.parametrize(
    "error", [WorkerFailedError("worker 0 failed: no such state"), ValueError("a key")], ids=str
)
def test_checkpoint_whose_state_does_not_fit_is_damaged(
    copied: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(Learning, "load_state_dict", EndsAtTheState(error))
    with pytest.raises(DamagedError, match="is not a state of this run's spec"):
        resume(copied, total_frames=1_000)
