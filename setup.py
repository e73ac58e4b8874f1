"""The kernels in C++ and the copy of runs/ in a wheel; all else is in pyproject.toml.

pip compiles the kernels where there is a compiler, once for each instruction set; at run time
`atari_dqn.fast.cpu.library` loads the best that the processor has. They bind no Python: ctypes loads them, so
that a wheel is for a platform and for every version of Python.
"""

import os
import platform
import shutil
import sys
import zlib
from copy import copy
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

FLAGS = [
    "-std=c++20", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-pthread",
    "-Wno-maybe-uninitialized", "-Wno-uninitialized",  # in the compiler's own headers
]  # fmt: skip
AVX2 = ["-mavx2", "-mfma"]
AVX512 = [
    "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mavx512bf16", "-mprfchw",
    "-mamx-tile", "-mamx-bf16",
]  # fmt: skip
"""What a processor lacks of them, bf16 and AMX, is never called."""
PORTABLE = ["frames", "optimizer", "priorities"]
PRODUCTS = ["backward", "forward", "linear", "step", "torso", "units"]
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
        extra_compile_args=[*FLAGS, *flags],
        extra_link_args=["-pthread"],
        optional=True,
    )


def libraries() -> list[Extension]:
    """List the libraries for this kind of processor, the names ending in the instruction set they need.

    Those that take longest to compile come first, so that the others are compiled meanwhile.
    """
    machine = platform.machine().lower()
    if sys.platform not in ("linux", "darwin"):
        return []
    found = []
    if machine in ("x86_64", "amd64"):
        sets = {"avx512": AVX512, "avx2": AVX2}
        found += [kernels(f"products_{name}", PRODUCTS, flags) for name, flags in sets.items()]
        found += [kernels(f"portable_{name}", PORTABLE, flags) for name, flags in sets.items()]
    if machine in ("aarch64", "arm64"):
        found.append(kernels("products_neon", PRODUCTS, []))
    return [*found, kernels("portable", PORTABLE, []), kernels("threads", ["threads"], [])]


class Build(build_ext):
    """Compiles everything anew: what an earlier build left would outlive one that fails, of other sources."""

    def get_ext_filename(self, fullname: str) -> str:
        """Name a library without the version of Python."""
        return str(Path(*fullname.split(".")).with_suffix(".so"))

    def run(self) -> None:
        """Compile what can be."""
        if self.inplace or self.editable_mode:
            for path in Path(FOLDER).glob("_*.so"):
                path.unlink()
        super().run()

    def build_extensions(self) -> None:
        """Compile several libraries at once."""
        self.parallel = self.parallel or os.cpu_count()
        super().build_extensions()

    def build_extension(self, ext: Extension) -> None:
        """Compile a library, its objects in a folder of its own: several have the same sources."""
        Path(self.get_ext_fullpath(ext.name)).unlink(missing_ok=True)
        own = copy(self)
        own.build_temp = str(Path(self.build_temp, ext.name))
        build_ext.build_extension(own, ext)


class BuildPython(build_py):
    """Copies runs/ into a wheel, for `atari_dqn.spec.shipped`; an editable installation needs no copy."""

    def run(self) -> None:
        """Copy the package, then runs/."""
        super().run()
        if not self.editable_mode:
            folder = Path(self.build_lib, "atari_dqn", "shipped_runs")
            shutil.rmtree(folder, ignore_errors=True)  # an earlier build's
            shutil.copytree("runs", folder, ignore=shutil.ignore_patterns("*.md"))


class Wheel(bdist_wheel):
    """Names a wheel after the platform alone."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tags of Python, of its binary interface, and of the platform."""
        return "py3", "none", super().get_tag()[2]


setup(
    cmdclass={"build_ext": Build, "build_py": BuildPython, "bdist_wheel": Wheel},
    ext_modules=libraries(),
)
