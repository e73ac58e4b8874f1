"""Build the source archive, and from it the wheel for this platform, which holds every instruction set.

python scripts/build_wheel.py --out dist

A wheel is for one platform and every version of Python. On Linux its name gives the version of glibc that
its libraries need, so that pip refuses it on an older system. A library that could not be compiled is an
error here, while an installation goes on without it. It needs `build`, `wheel` and, on Linux, binutils.
"""

import argparse
import platform
import re
import runpy
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from contextlib import chdir
from pathlib import Path
from unittest.mock import patch

ROOT = Path(__file__).parents[1]
Version = tuple[int, ...]
OLDEST_GLIBC = (2, 28)
"""That of PyTorch's own wheels: to support an older one is of no use."""
NEWEST_OTHERS = {"GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (8, 0)}
"""Versions of the C++ libraries on a system with that glibc."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of the two files")
    parser.add_argument("--no-isolation", action="store_true", help="use the setuptools installed here")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), isolated=not arguments.no_isolation)
        (wheel,) = Path(folder).glob("*.whl")
        refuse_missing(wheel, expected_libraries())
        if sys.platform == "linux":
            wheel = rename(wheel, platform_tag(symbol_versions(wheel), platform.machine()))
        arguments.out.mkdir(parents=True, exist_ok=True)
        for path in (*Path(folder).glob("*.tar.gz"), wheel):
            print(path.replace(arguments.out / path.name))


def build(folder: Path, *, isolated: bool) -> None:
    """Build the source archive from the checkout, and the wheel from the archive."""
    options = [] if isolated else ["--no-isolation"]
    subprocess.run([sys.executable, "-m", "build", "--outdir", folder, *options, ROOT], check=True)


def expected_libraries() -> set[str]:
    """List the files that setup.py compiles on this platform, as they are named in a wheel."""
    with patch("setuptools.setup") as setup, chdir(ROOT):
        runpy.run_path("setup.py")
    return {f"{extension.name.replace('.', '/')}.so" for extension in setup.call_args.kwargs["ext_modules"]}


def refuse_missing(wheel: Path, expected: Iterable[str]) -> None:
    """End the program if a wheel lacks a library."""
    with zipfile.ZipFile(wheel) as archive:
        missing = sorted(set(expected) - set(archive.namelist()))
    if missing:
        sys.exit(f"{wheel.name}: not compiled: {', '.join(missing)}; the compiler's messages are above")


def symbol_versions(wheel: Path) -> dict[str, Version]:
    """Return the newest version of each system library that the wheel's libraries need."""
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        libraries = [archive.extract(name, folder) for name in archive.namelist() if name.endswith(".so")]
        command = ["objdump", "-T", *libraries]
        table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return newest_versions(table)


def newest_versions(table: str) -> dict[str, Version]:
    """Return the newest version of each library in a table of symbols, as `objdump -T` prints it."""
    newest: dict[str, Version] = {}
    for name, text in re.findall(r"\((GLIBC|GLIBCXX|CXXABI|GCC)_([\d.]+)\)", table):
        version = tuple(int(part) for part in text.split("."))
        newest[name] = max(version, newest.get(name, ()))
    return newest


def platform_tag(needed: dict[str, Version], machine: str) -> str:
    """Return the tag of PEP 600; end the program if the C++ libraries are newer than the tag implies."""
    for name, newest in NEWEST_OTHERS.items():
        if needed.get(name, ()) > newest:
            found = ".".join(map(str, needed[name]))
            sys.exit(f"needs {name}_{found}, which is newer than wheels may need; use an older compiler")
    major, minor = max(OLDEST_GLIBC, needed["GLIBC"][:2])
    return f"manylinux_{major}_{minor}_{machine}"


def rename(wheel: Path, tag: str) -> Path:
    """Give a wheel another platform, in its name and in its metadata."""
    tags = ["tags", "--remove", "--platform-tag", tag, str(wheel)]
    name = subprocess.run(
        [sys.executable, "-m", "wheel", *tags], check=True, capture_output=True, text=True
    ).stdout
    return wheel.with_name(name.strip())


if __name__ == "__main__":
    main()
