"""The threads that share the kernels' loops: every piece is computed once, before the loop ends."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from atari_dqn.fast.cpu import library

CHECKS = Path(__file__).with_name("thread_checks_cpp") / "main.cpp"
GXX = shutil.which("g++") or "g++"
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed here")
needs_pool = pytest.mark.skipif(not library.uses_threads(), reason="no kernels, or torch without OpenMP")


def run(folder: Path, *flags: str, words: tuple[str, ...] = ()) -> str:
    """Compile the threads with a program that checks them, and run it."""
    program, source = folder / "checks", library.FOLDER / "threads.cpp"
    options = ["-std=c++20", "-O2", "-pthread", "-DKERNEL_SOURCES=0u", *flags]
    subprocess.run([GXX, *options, str(CHECKS), str(source), "-o", str(program)], check=True)
    return subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout


@needs_compiler
@pytest.mark.slow
def test_every_piece_is_computed_once(tmp_path: Path) -> None:
    assert run(tmp_path) == "right\n"


@needs_compiler
@pytest.mark.slow
def test_a_sanitizer_finds_no_race(tmp_path: Path) -> None:
    flags = ("-fsanitize=thread", "-Wno-tsan", "-g")
    assert run(tmp_path, *flags, words=("no fork",)) == "right\n"


@needs_pool
def test_the_kernels_have_as_many_threads_as_torch() -> None:
    pool = ctypes.cast(library._pool(), ctypes.POINTER(ctypes.CFUNCTYPE(ctypes.c_size_t)))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert pool[0]() == 3
    finally:
        torch.set_num_threads(before)
