"""Every kernel in every vector width, against plain loops in double precision: kernel_checks_cpp/ has them.

The installed libraries are checked as they are. Other widths and instruction sets are compiled: any processor
computes vectors of 4, 8 and 16 numbers, and an emulator those of ARM.
"""

import fcntl
import os
import runpy
import shutil
import subprocess
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
import setuptools

from atari_dqn.fast.cpu import library

CHECKS = Path(__file__).with_name("kernel_checks_cpp")
WIDTHS = (4, 8, 16)
GXX, ARM_GXX, ARM = "g++", "aarch64-linux-gnu-g++", "qemu-aarch64-static"
LINKED = ("-Wl,--allow-multiple-definition",)  # each library says what it was compiled of
SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
pytestmark = [pytest.mark.timeout(1800)]


def needs(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"no {program} on this machine")


def run(*words: str | Path, **variables: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ | variables)
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "kernel checks"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What setup.py defines: sources and flags."""
    with pytest.MonkeyPatch.context() as patch, chdir(library.FOLDER.parents[2]):
        patch.setattr(setuptools, "setup", lambda **_: None)
        return runpy.run_path("setup.py")


def objects(shared: Path, compiler: str, flags: tuple[str, ...] = ()) -> list[Path]:
    """Compile the checks once; processes that need them meanwhile wait."""
    folder = shared / compiler
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            for source in CHECKS.glob("*.cpp"):
                run(compiler, "-std=c++20", "-O2", *flags, "-c", source, "-o", folder / f"{source.stem}.o")
            (folder / "done").touch()
    return sorted(folder.glob("*.o"))


def compiled(built: dict[str, Any], checks: list[Path], folder: Path, compiler: str, *flags: str) -> Path:
    """Compile the kernels with other flags than those of an installation, and link them with the checks."""
    sources = [library.FOLDER / f"{name}.cpp" for name in ("threads", *built["PORTABLE"], *built["PRODUCTS"])]
    options = [*built["FLAGS"], "-DKERNEL_SOURCES=0u", "-Wno-psabi", *flags]
    run(compiler, *options, *LINKED, *sources, *checks, "-o", folder / "checks")
    return folder / "checks"


@pytest.mark.slow
@pytest.mark.parametrize("name", library.INSTRUCTION_SETS)
@pytest.mark.parametrize("threads", ["1", "3"])
def test_installed_kernels_compute_what_plain_loops_do(
    name: str, threads: str, shared: Path, tmp_path: Path
) -> None:
    needs(GXX)
    products = next(library.FOLDER.glob(f"_products_{name}.*so"), None)
    if products is None or not library._bits(name):
        pytest.skip(f"no kernels for {name} on this machine")
    portable = next(library.FOLDER.glob(f"_portable_{name}.*so"), None)
    pool = next(library.FOLDER.glob("_threads.*so"))
    libraries = [pool, products, portable or next(library.FOLDER.glob("_portable.*so"))]
    run(GXX, *objects(shared, GXX), *libraries, "-o", tmp_path / "checks")
    output = run(tmp_path / "checks", CHECK_THREADS=threads)
    assert output.endswith(" 0 failed\n")


@pytest.mark.thorough
def test_kernels_of_arm_compute_what_plain_loops_do(
    built: dict[str, Any], shared: Path, tmp_path: Path
) -> None:
    needs(ARM_GXX, ARM)
    checks = objects(shared, ARM_GXX)
    program = compiled(built, checks, tmp_path, ARM_GXX, "-O1", "-static")
    assert "vectors of 4 numbers, 0 failed" in run(ARM, program)


@pytest.mark.parametrize(
    "width",
    [
        pytest.param(8, marks=pytest.mark.thorough),
        *(pytest.param(other, marks=pytest.mark.thorough) for other in (4, 16)),
    ],
)
def test_sanitizers_find_nothing(width: int, built: dict[str, Any], shared: Path, tmp_path: Path) -> None:
    needs(GXX)
    flags = (f"-DVECTOR_NUMBERS={width}", "-O0", *SANITIZED)  # optimized, they take minutes to compile
    program = compiled(built, objects(shared, GXX), tmp_path, GXX, *flags)
    assert f"vectors of {width} numbers, 0 failed" in run(program)


@pytest.mark.thorough
@pytest.mark.parametrize("compiler", [GXX, "g++-11", "clang++"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_width_computes_what_plain_loops_do(
    width: int, compiler: str, built: dict[str, Any], shared: Path, tmp_path: Path
) -> None:
    needs(GXX, compiler)
    program = compiled(built, objects(shared, GXX), tmp_path, compiler, f"-DVECTOR_NUMBERS={width}")
    assert f"vectors of {width} numbers, 0 failed" in run(program)
