"""Checks and messages before a run starts: what a resumed run still needs, and a busy machine."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny import CPU, tiny_spec

from atari_dqn.cli.resume import resume
from atari_dqn.errors import UserError
from atari_dqn.machine.contention import CoreTimes
from atari_dqn.machine.hardware import allocated_bytes, find_hardware
from atari_dqn.machine.plan import make_plan
from atari_dqn.machine.sizes import MOST_ACTIONS
from atari_dqn.run.directory import RunDirectory
from atari_dqn.telemetry.events import Event, Notice
from atari_dqn.train.preflight import announce, busy_machine, check_run_fits


def test_resumed_run_needs_no_disk_space_for_the_checkpoints_that_it_has(
    tiny_run: Callable[..., Path],
) -> None:
    spec, run = tiny_spec(), RunDirectory.open(tiny_run())
    hardware = replace(find_hardware(run.path), memory_available_bytes=10**11)
    plan = make_plan(spec, num_actions=MOST_ACTIONS, device="cpu", hardware=hardware)
    kept = sum(item.bytes for item in plan.items if item.is_kept)
    lacking = min(kept, allocated_bytes(run.checkpoints)) // 2
    small = replace(hardware, disk_free_bytes=plan.bytes("disk") - lacking)
    check_run_fits(spec, CPU, small, run)
    with pytest.raises(UserError, match="of disk"):
        check_run_fits(spec, CPU, small)


def test_resumed_run_that_does_not_fit_keeps_its_keys(tiny_run: Callable[..., Path]) -> None:
    run = RunDirectory.open(tiny_run())
    small = replace(find_hardware(run.path), memory_available_bytes=10**6)
    with pytest.raises(UserError, match="a run that has begun keeps its spec"):
        check_run_fits(tiny_spec(), CPU, small, run)


def test_resumed_run_with_too_few_cores_for_its_actors_keeps_its_keys(tiny_run: Callable[..., Path]) -> None:
    keys = ("env.num_envs=8", "actors.mode=free_running", "actors.fragment_steps=5")
    spec = tiny_spec(*keys, "actors.error_buffer_steps=100", "actors.processes=4")
    run = RunDirectory.open(tiny_run())
    small = replace(find_hardware(run.path), cores_usable=2)
    with pytest.raises(UserError, match="resume it on 4 cores"):
        check_run_fits(spec, CPU, small, run)


def test_logs_of_a_raised_budget_must_fit_on_the_disk(
    tiny_run: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(tiny_run(), tmp_path / "run", symlinks=True)
    monkeypatch.setattr("atari_dqn.train.launch.resume", lambda *_, **__: pytest.fail("it has begun"))
    with pytest.raises(UserError, match=r"needs .* more of disk"):
        resume(tmp_path / "run", frames="10_000_000_000_000_000", plain=True)


BUSY = (
    "other programs use 2.0 of 2 cores, and the 2 threads of torch would wait for one another: "
    "end them, or set learner.threads = 1"
)


@pytest.mark.parametrize(
    ("device", "threads", "said"), [("cpu", 2, BUSY), ("cpu", 1, None), ("cuda", 2, None)]
)
def test_busy_machine_is_reported_where_threads_wait_for_one_another(
    monkeypatch: pytest.MonkeyPatch, device: str, threads: int, said: str | None
) -> None:
    before, after = (
        CoreTimes(at=at, usable_cores=2, allowed_cores=2, used=3 * at, own=at, threads={})
        for at in (0.0, 10.0)
    )
    monkeypatch.setattr("atari_dqn.train.preflight.read_core_times", lambda: after)
    remedy = "set learner.threads = {threads}"
    assert busy_machine(before, torch.device(device), threads, remedy) == said


class Shown:
    """A view that keeps the kind, the step and the frames of each notice."""

    def __init__(self) -> None:
        self.notices: list[tuple[str, int, int]] = []

    def handle(self, event: Event) -> None:
        assert isinstance(event, Notice)
        self.notices.append((event.kind, event.step, event.env_frames))

    def close(self) -> None: ...


def test_messages_before_a_resume_are_at_its_step_and_frames() -> None:
    view = Shown()
    announce(tiny_spec("learner.compile=true", "env.frame_skip=3"), [view], step=100, busy="a sentence")
    assert view.notices == [("busy machine", 100, 300), ("compiling", 100, 300)]
