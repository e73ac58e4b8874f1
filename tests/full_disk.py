"""A disk that is full, by real means: the kernel refuses to write."""

import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """Let the kernel refuse to write a file beyond `size` bytes, as a full disk would."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[None]:
    """Mount a file system of this size on a folder; skip the test where one may not."""
    options = ["-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(folder)]
    if subprocess.run(["mount", *options], capture_output=True, check=False).returncode:
        pytest.skip("mounting takes rights that this user has not")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
