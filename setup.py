"""The kernels in C++ and the copy of runs/ in a wheel; all else is in pyproject.toml.

pip compiles the kernels where there is a compiler. They bind no Python: ctypes loads them. OpenMP's functions
are left open, for the library that torch loads.
"""

import platform
import shutil
import sys
import zlib
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

FLAGS = [
    "-std=c++17", "-O3", "-fopenmp", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off",
    "-Wno-maybe-uninitialized", "-Wno-uninitialized",  # in the compiler's own headers
]  # fmt: skip
AVX512 = ["-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512bf16", "-mprfchw"]
AMX = ["-mamx-tile", "-mamx-bf16"]  # what a processor lacks is never called
PRODUCTS = ["backward", "convolution", "forward", "linear", "step", "torso"]
FOLDER = "atari_dqn/fast/cpu"
FILES = sorted(Path(FOLDER).glob("*.?pp"))
SOURCES = zlib.crc32(b"".join(path.read_bytes() for path in FILES))
"""By which `atari_dqn.fast.cpu.library` knows what a library was compiled of."""


def kernels(name: str, sources: list[str], flags: list[str]) -> Extension:
    """Return a library; an installation without a compiler goes on without it."""
    return Extension(
        f"atari_dqn.fast.cpu._{name}",
        [f"{FOLDER}/{source}.cpp" for source in sources],
        define_macros=[("KERNEL_SOURCES", f"{SOURCES}u")],
        extra_compile_args=flags,
        optional=True,
    )


class Build(build_ext):
    """Compiles everything anew: what an earlier build left would outlive one that fails, of other sources."""

    def run(self) -> None:
        """Compile what can be."""
        if self.inplace or self.editable_mode:
            for path in Path(FOLDER).glob("_*.so"):
                path.unlink()
        super().run()

    def build_extension(self, ext: Extension) -> None:
        """Compile a library."""
        Path(self.get_ext_fullpath(ext.name)).unlink(missing_ok=True)
        super().build_extension(ext)


class BuildPython(build_py):
    """Copies runs/ into a wheel, for `atari_dqn.spec.shipped`; an editable installation needs no copy."""

    def run(self) -> None:
        """Copy the package, then runs/."""
        super().run()
        if not self.editable_mode:
            folder = Path(self.build_lib, "atari_dqn", "shipped_runs")
            shutil.rmtree(folder, ignore_errors=True)  # an earlier build's
            shutil.copytree("runs", folder, ignore=shutil.ignore_patterns("*.md"))


on_linux = sys.platform == "linux"
setup(
    cmdclass={"build_ext": Build, "build_py": BuildPython},
    ext_modules=[
        *([kernels("portable", ["frames", "optimizer", "priorities"], FLAGS)] if on_linux else []),
        *(
            [kernels("products", PRODUCTS, FLAGS + AVX512 + AMX)]
            if on_linux and platform.machine() == "x86_64"
            else []
        ),
    ],
)
