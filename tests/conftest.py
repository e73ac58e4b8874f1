import gc
import os
import shutil
import signal
import tempfile
from pathlib import Path

# Workers of pytest-xdist share the cores; whatever of ours they start does as well.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# As the package limits how long threads wait, which is imported after torch here.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("GOMP_SPINCOUNT", "2000")

from collections.abc import Callable, Iterator

import jaxtyping
import psutil
import pytest
import shapes
from forked import CommandServer

from atari_dqn.machine.cgroup import ControlGroups
from atari_dqn.machine.hardware import usable_cores

MEMORY_DISK, NEEDED_BYTES = Path("/dev/shm"), 8 * 10**9

# Most tests write runs, and a run waits for the disk at each of its flushes. Together they are about 1 GB.
if MEMORY_DISK.is_dir() and "TMPDIR" not in os.environ:
    free = min(shutil.disk_usage(MEMORY_DISK).free, psutil.virtual_memory().available)
    if free > NEEDED_BYTES:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY_DISK)

CHECKED = ("agent", "minibatch", "replay")
"""Modules whose shape annotations every test checks. Nothing of them is imported before this line has run."""

jaxtyping.jaxtyped = shapes.sparingly  # which the hook puts around what it imports
jaxtyping.install_import_hook([f"atari_dqn.{name}" for name in CHECKED], "shapes.checked")

# Signals as a program in a terminal has them: a script's background ignores SIGINT, and nohup SIGHUP.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(optionalhook=True)  # there may be no xdist
def pytest_xdist_auto_num_workers() -> int:
    """As many as the cores granted to this process, and one: tests wait for files and processes."""
    wanted = os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS")
    return int(wanted) if wanted else usable_cores(ControlGroups()) + 1


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Give each worker neighbouring tests: what the tests of a module share is made once for most modules."""
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no":
        config.option.dist = "worksteal"


LONGEST = ("test_tutorial.py", "test_sweep_on_ray.py", "test_notebook.py", "test_tune_survives.py")
"""Modules with tests of a minute or more."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests, so that no worker is left with one when the others have finished."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


gc.disable()  # until all tests are collected: what is made until then is kept


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every later collection of garbage."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def one_torch_thread() -> Iterator[None]:
    """Nothing here is large enough for two, which on busy cores wait for each other most of the time.

    PyTorch is imported here, because the process that distributes tests to workers needs none.
    """
    import torch

    from atari_dqn.machine.denormals import flush_denormals

    flush_denormals()  # before a test starts PyTorch's threads, as a program does, whose threads so flush
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def command_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandServer]:
    """Runs commands with `run`: each in a process forked from one that has imported everything."""
    with CommandServer(tmp_path_factory.mktemp("commands")) as server:
        yield server


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Callable[..., Path]:
    """Returns the finished tiny run with some overrides: made once for all workers, and for reading only."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if hasattr(pytestconfig, "workerinput") else base) / "tiny runs"
    folder.mkdir(exist_ok=True)

    def once(*overrides: str) -> Path:
        from tiny import run_once  # here, because most of the package is imported with it

        return run_once(folder, *overrides)

    return once


@pytest.fixture(autouse=True)
def shapes_are_checked_anew() -> None:
    shapes.begin_test()


@pytest.fixture
def sigquit_by_default() -> Iterator[None]:
    """Let child processes end by SIGQUIT where a shell that runs tests in its background ignores it."""
    before = signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGQUIT, before)
