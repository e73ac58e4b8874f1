import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from playing import CATCH, PLAIN, as_bytes, play, random_actions

from atari_dqn.envs.games import make_envs
from atari_dqn.envs.pool import WorkerDiedError, WorkerPool, split_envs
from atari_dqn.errors import UserError

SHARED = Path("/dev/shm")


@pytest.mark.parametrize(
    ("num_envs", "workers", "lengths"),
    [(16, 2, [8, 8]), (5, 2, [2, 3]), (7, 3, [2, 2, 3]), (2, 5, [1, 1]), (1, 1, [1])],
)
def test_environments_are_split_evenly_and_completely(num_envs, workers, lengths):
    ranges = split_envs(num_envs, workers)
    assert [len(envs) for envs in ranges] == lengths
    assert [slot for envs in ranges for slot in envs] == list(range(num_envs))


@pytest.fixture
def children() -> Callable[[], set[multiprocessing.process.BaseProcess]]:
    """Returns the processes that this test has started and that have not ended."""
    before = {*multiprocessing.active_children()}
    return lambda: {*multiprocessing.active_children()} - before


@pytest.mark.slow
def test_no_more_workers_than_environments_are_started(envs_of, children):
    envs = envs_of(game="catch", env=CATCH, num_envs=2, workers=3)
    assert envs.reset().first.tolist() == [True, True]
    assert len(children()) == 2


@pytest.fixture
def pool(envs_of) -> WorkerPool:
    envs = envs_of(game="catch", env=CATCH, num_envs=5, workers=2)
    envs.reset()
    return envs


@pytest.fixture(scope="module")
def lasting_pool() -> Iterator[WorkerPool]:
    """A pool for tests that leave it as it was."""
    envs = make_envs(game="catch", env=CATCH, num_envs=5, workers=2, seed=1, stream="train")
    envs.reset()
    yield envs
    envs.close()


def workers_of(pool: WorkerPool) -> list[multiprocessing.process.BaseProcess]:
    return [worker.process for worker in pool._workers]


@pytest.mark.slow
def test_workers_end_a_step_at_a_lost_life_as_one_process_does(envs_of):
    env = replace(CATCH, life_loss_ends_skip=True)
    alone, spread = (envs_of(game="catch", env=env, num_envs=3, workers=workers) for workers in (0, 2))
    actions = random_actions(alone, 60)
    for envs in (alone, spread):
        envs.reset()
    rows = play(alone, actions)
    assert any(row.life_lost.any() for row in rows)
    assert as_bytes(play(spread, actions)) == as_bytes(rows)


def test_more_workers_than_the_system_allows_is_an_error_that_names_the_key(envs_of, children):
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 8, allowed[1]))
    try:
        with pytest.raises(UserError, match=r"too many open files; lower system\.workers"):
            envs_of(game="catch", env=CATCH, num_envs=16, workers=16)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, allowed)
    assert children() == set()


def test_worker_that_does_not_answer_is_reported(pool, monkeypatch):
    monkeypatch.setattr("atari_dqn.envs.pool._SILENT_WAITS", 3)
    monkeypatch.setattr("atari_dqn.envs.pool._WAIT_SECONDS", 0.1)
    os.kill(workers_of(pool)[1].pid, signal.SIGSTOP)
    pool.send(np.zeros(5, np.int64))
    # 3 waits, and one for each of 3 environments, are 0.6 seconds; without these it would be 0.3, "0 seconds"
    expected = r"worker 1 \(environments 2 to 4\) has not answered for 1 seconds"
    with pytest.raises(WorkerDiedError, match=expected):
        pool.recv()


SUSPENDED = """
import multiprocessing, os, signal
import numpy as np
from atari_dqn.envs import pool
from atari_dqn.envs.games import make_envs
from playing import CATCH

if __name__ == "__main__":
    pool._SILENT_WAITS, pool._WAIT_SECONDS = 30, 0.1
    environments = make_envs(game="catch", env=CATCH, num_envs=2, workers=1, seed=1, stream="test")
    environments.reset()
    os.kill(multiprocessing.active_children()[0].pid, signal.SIGSTOP)
    environments.send(np.zeros(2, np.int64))
    print("waiting", flush=True)
    environments.recv()
    print("answered", flush=True)
"""


@pytest.mark.slow
def test_suspended_run_continues(tmp_path):
    (tmp_path / "suspended.py").write_text(SUSPENDED)
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    program = subprocess.Popen(
        [sys.executable, tmp_path / "suspended.py"],
        stdout=subprocess.PIPE, text=True, start_new_session=True, env=os.environ | {"PYTHONPATH": paths},
    )  # fmt: skip
    assert program.stdout is not None
    try:
        assert program.stdout.readline() == "waiting\n"
        time.sleep(0.5)  # now it is waiting
        os.killpg(program.pid, signal.SIGSTOP)
        time.sleep(3.5)  # longer than a worker may be silent
        os.kill(program.pid, signal.SIGCONT)
        time.sleep(0.3)  # the parent's wait ends before the worker can answer
        os.killpg(program.pid, signal.SIGCONT)
        assert program.communicate(timeout=60)[0] == "answered\n"
        assert program.returncode == 0
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)


def left_in_shared_memory(before: Collection[Path] = (), pattern: str = "*") -> set[Path]:
    """Return the files that remain for five seconds; other programs may have some for a moment."""
    deadline = time.monotonic() + 5
    while (left := {*SHARED.glob(pattern)} - {*before}) and time.monotonic() < deadline:
        time.sleep(0.05)
    return left


def kill(process: multiprocessing.Process) -> None:
    os.kill(process.pid, signal.SIGKILL)


@pytest.mark.fault("M07")
def test_killed_worker_is_reported_within_two_seconds_and_nothing_is_left(envs_of, children):
    shared_before = set(SHARED.iterdir())
    pool = envs_of(game="catch", env=CATCH, num_envs=5, workers=2)
    pool.reset()
    workers = workers_of(pool)
    kill(workers[1])
    started = time.monotonic()
    with pytest.raises(WorkerDiedError, match=r"worker 1 \(environments 2 to 4\) was killed by SIGKILL"):
        play(pool, random_actions(pool, 10))
    assert time.monotonic() - started < 2
    pool.close()
    assert children() == set()
    assert left_in_shared_memory(shared_before) == set()


@pytest.mark.fault("M07")
def test_worker_killed_while_it_plays_is_reported(envs_of):
    envs = envs_of(game="pong", env=PLAIN, num_envs=2, workers=1)
    envs.reset()
    (worker,) = workers_of(envs)
    os.kill(worker.pid, signal.SIGSTOP)
    envs.send(np.zeros(2, np.int64))
    kill(worker)
    with pytest.raises(WorkerDiedError, match="worker 0"):
        envs.recv()


@pytest.mark.slow
def test_worker_killed_after_its_answer_is_reported_while_another_is_waited_for(pool):
    first, second = workers_of(pool)
    os.kill(second.pid, signal.SIGSTOP)
    pool.send(np.zeros(5, np.int64))
    assert pool._workers[0].pipe.poll(5)
    kill(first)
    with pytest.raises(WorkerDiedError, match=r"worker 0 \(environments 0 to 1\) was killed by SIGKILL"):
        pool.recv()


def test_error_in_a_worker_is_raised_with_its_traceback(pool):
    pool.send(np.array([0, 0, 0, 0, 99]))
    with pytest.raises(WorkerDiedError, match=r"(?s)worker 1 .* failed:.*act.*IndexError"):
        pool.recv()


@pytest.mark.slow
def test_user_error_in_a_worker_is_raised_as_one(envs_of, children):
    with pytest.raises(UserError, match='did you mean "pong"'):
        envs_of(game="pnog", env=PLAIN, num_envs=2, workers=2)
    assert children() == set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_workers_ignore_signals_to_the_process_group(lasting_pool, number):
    for worker in workers_of(lasting_pool):
        os.kill(worker.pid, number)
    assert len(play(lasting_pool, random_actions(lasting_pool, 10))) == 10


def test_time_that_workers_are_busy_adds_up(lasting_pool):
    busy_seconds = [lasting_pool.busy_seconds]
    for _ in range(30):
        play(lasting_pool, np.zeros((1, 5), np.int64))
        busy_seconds.append(lasting_pool.busy_seconds)
    assert busy_seconds == sorted(busy_seconds)


@pytest.mark.fault("M07")
@pytest.mark.usefixtures("lasting_pool")
def test_sharing_memory_leaves_no_file():
    assert left_in_shared_memory(pattern="pym-*") == set()


def test_send_twice_or_recv_twice_is_an_assertion_error(lasting_pool):
    lasting_pool.send(np.zeros(5, np.int64))
    with pytest.raises(AssertionError, match="STEP while a step is under way"):
        lasting_pool.send(np.zeros(5, np.int64))
    lasting_pool.recv()
    with pytest.raises(AssertionError, match="recv without send"):
        lasting_pool.recv()


def run_python(code: str, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


PROGRAM = """
import multiprocessing, os, signal, sys
sys.path.insert(0, {here!r})
from playing import CATCH
from atari_dqn.envs.games import make_envs
environments = make_envs(game="catch", env=CATCH, num_envs=2, seed=1, stream="train", workers=2)
environments.reset()
print(*(process.pid for process in multiprocessing.active_children()), flush=True)
{then}
"""


def program(then: str) -> str:
    return PROGRAM.format(here=str(Path(__file__).parent), then=then)


def gone(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.fault("M07")
def test_workers_end_with_a_killed_parent():
    with run_python(program("os.kill(os.getpid(), signal.SIGKILL)")) as parent:
        pids = [int(pid) for pid in parent.communicate(timeout=300)[0].split()]
    deadline = time.monotonic() + 5
    while not all(map(gone, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert len(pids) == 2
    assert all(map(gone, pids))


STOPPED = """
for worker in multiprocessing.active_children():
    os.kill(worker.pid, signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has ended")
@pytest.mark.slow
def test_stopped_workers_end_with_a_killed_parent():
    with run_python(program(STOPPED)) as parent:
        pids = [int(pid) for pid in parent.stdout.readline().split()]
    deadline = time.monotonic() + 30
    while not all(map(gone, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)
    left = [pid for pid in pids if not gone(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert len(pids) == 2
    assert left == []


def test_stopped_worker_is_continued_when_the_run_is_to_end(pool, monkeypatch):
    monkeypatch.setattr("atari_dqn.envs.pool._WAIT_SECONDS", 0.1)
    pool.stop_waiting_when(lambda: True)
    os.kill(workers_of(pool)[1].pid, signal.SIGSTOP)
    pool.send(np.zeros(5, np.int64))
    assert len(pool.recv().reward) == 5


@pytest.mark.slow
def test_hanging_worker_is_given_up_soon_when_the_run_is_to_end(pool, monkeypatch):
    monkeypatch.setattr("atari_dqn.envs.pool._WAIT_SECONDS", 0.1)
    monkeypatch.setattr("atari_dqn.envs.worker_handle.Worker.resume", lambda worker: None)
    pool.stop_waiting_when(lambda: True)
    os.kill(workers_of(pool)[1].pid, signal.SIGSTOP)
    pool.send(np.zeros(5, np.int64))
    with pytest.raises(WorkerDiedError, match=r"worker 1 .* has not answered .* after the run was"):
        pool.recv()


@pytest.mark.slow
def test_killed_worker_is_noticed_between_steps(pool):
    pool.check()
    first = workers_of(pool)[0]
    kill(first)
    first.join()
    with pytest.raises(WorkerDiedError, match=r"worker 0 .* was killed by SIGKILL"):
        pool.check()


@pytest.mark.slow
def test_program_that_does_not_close_its_pool_ends():
    with run_python(program("")) as parent:
        _, errors = parent.communicate(timeout=300)
    assert (parent.returncode, errors) == (0, "")


def test_environments_import_neither_torch_nor_rich():
    modules = ", ".join(
        f"atari_dqn.envs.{name}" for name in ("games", "atari", "catch", "gymnasium_env", "worker")
    )
    with run_python(
        f"import sys, {modules}; print(sorted({{'torch', 'rich'}} & set(sys.modules)))"
    ) as process:
        assert process.communicate(timeout=300)[0].strip() == "[]"
