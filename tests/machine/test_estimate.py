"""`--plan` answers in a bounded time, whatever the spec."""

import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from tiny import ROLLOUTS, tiny_spec

from atari_dqn.errors import UserError
from atari_dqn.spec.contradictions import contradictions
from atari_dqn.spec.keys import flatten
from atari_dqn.train import estimate
from atari_dqn.train.estimate import Estimate, cheaper, estimate_rate

MANY = (
    "env.num_envs=3000",
    "replay.prefill_steps=15000",
    "replay.capacity_steps=60000",
    "training.total_frames=100000",
)


def test_thousands_of_environments_are_measured_as_64_and_that_is_said() -> None:
    spec, changes = cheaper(tiny_spec(*MANY))
    assert spec.env.num_envs == 64
    assert changes == ("with 64 environments in place of 3,000",)


@pytest.mark.parametrize(
    ("envs", "processes", "measured"),
    [(360, 360, (64, 64)), (256, 32, (64, 8)), (90, 9, (60, 6)), (300, 3, (64, 1))],
)
def test_fewer_actors_are_measured_with_as_many_environments_each(
    envs: int, processes: int, measured: tuple[int, int]
) -> None:
    actors = ("actors.mode=free_running", f"actors.processes={processes}", "actors.error_buffer_steps=50000")
    spec, _ = cheaper(tiny_spec(*MANY, *actors, f"env.num_envs={envs}"))
    assert (spec.env.num_envs, spec.actors.processes) == measured
    assert list(contradictions(flatten(spec))) == []


def test_rollouts_are_measured_with_environments_that_divide_them() -> None:
    keys = ("env.num_envs=100", "replay.capacity_steps=1000", "replay.prefill_steps=1000")
    more = ("learner.batch_size=100", "training.total_frames=100000")
    spec, _ = cheaper(tiny_spec(*ROLLOUTS, *keys, *more))
    assert spec.env.num_envs == 50
    assert list(contradictions(flatten(spec))) == []


def test_number_of_actors_that_are_measured_is_said() -> None:
    actors = ("actors.mode=free_running", "actors.processes=32", "actors.error_buffer_steps=50000")
    _, changes = cheaper(tiny_spec(*MANY, *actors, "env.num_envs=256"))
    assert changes == ("with 64 environments in place of 256", "with 8 actors in place of 32")


def test_no_more_workers_than_environments_are_measured() -> None:
    spec = tiny_spec(*MANY)
    measured, _ = cheaper(replace(spec, system=replace(spec.system, workers=3000)))
    assert measured.system.workers == 64


def test_compiling_is_left_out_and_that_is_said() -> None:
    spec, changes = cheaper(tiny_spec("learner.compile=true"))
    assert (spec.learner.compile, changes) == (False, ("not compiled",))


def test_other_specs_are_measured_as_they_are() -> None:
    spec = tiny_spec()
    assert cheaper(spec) == (spec, ())


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Have a script take the place of the process that measures."""

    def replace_with(script: str) -> None:
        monkeypatch.setattr(estimate, "own_command", lambda module: ["/bin/sh", "-c", script])

    return replace_with


def test_process_that_takes_too_long_is_ended_with_what_it_started(measuring, tmp_path: Path) -> None:
    mark = tmp_path / "pids"
    measuring(f"sleep 600 & echo $! $$ > {mark}; wait")
    found = estimate_rate(tiny_spec(), "cpu", within_seconds=1.0)
    assert found == Estimate(
        frames_per_second=None, basis="no rate could be measured within 1 s; `dqn bench` takes longer"
    )
    deadline = time.monotonic() + 30  # a process that was killed is seen for an instant longer
    while any(is_running(int(pid)) for pid in mark.read_text().split()):
        assert time.monotonic() < deadline


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.slow
def test_process_that_measures_ends_with_a_command_that_is_ended() -> None:
    command = [sys.executable, "-m", "atari_dqn", "train", "bbf_rr2", "--plan"]  # an update takes seconds
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as planning:
        while not (children := psutil.Process(planning.pid).children()):
            assert planning.poll() is None
            time.sleep(0.02)
        time.sleep(2.0)
        planning.terminate()
    assert planning.returncode == -signal.SIGTERM
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive


def test_what_is_wrong_with_the_run_is_an_error_of_the_users(measuring) -> None:
    measuring("""echo '{"error": "no ROM"}'""")
    with pytest.raises(UserError, match="no ROM"):
        estimate_rate(tiny_spec(), "cpu", within_seconds=60.0)


def test_failure_to_measure_is_shown_whole(measuring) -> None:
    measuring("echo Traceback >&2; exit 1")
    with pytest.raises(RuntimeError, match="Traceback"):
        estimate_rate(tiny_spec(), "cpu", within_seconds=60.0)


@pytest.mark.slow
def test_rate_of_a_spec_is_measured_by_a_process_of_its_own() -> None:
    found = estimate_rate(tiny_spec(), "cpu", within_seconds=300.0)
    assert found.frames_per_second is not None
    assert found.frames_per_second > 0
    assert found.basis == "measured here just now"
