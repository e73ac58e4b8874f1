"""Import every script of benchmarks/ and scripts/, and look up the names of the package that they use.

Run as a program, which `test_scripts.py` does: it prints what it finds as JSON. A script that needs a package
of others is not imported, but its names are looked up.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.metadata import packages_distributions
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
FOLDERS = (ROOT / "benchmarks", ROOT / "scripts")
PACKAGE = "atari_dqn"
NEEDS_OTHERS = {"rliable_results", "train_cleanrl", "train_sb3"}
"""Scripts that run in an environment of their own, made for other systems."""
ON_A_GPU_MACHINE = {"numpy", "opencv-python-headless", "rich", "torch", "typer"}
"""Our dependencies that benchmarks/gpu.sh expects to be there; it installs those of gpu_wheels.txt."""
TRAINING = ("cli.train", "api.training", "envs.atari", "train.launch", "view.run_views")
COMMAND = re.compile(rf"\bfrom ({PACKAGE}[\w.]*) import (\w+)")
PROGRAM = re.compile(rf"^({PACKAGE})\.(\w+)$")
"""Programs that a script passes to another interpreter: an import in its text, or a package after `-m`."""
MISSING = object()


def scripts() -> list[Path]:
    return [path for folder in FOLDERS for path in sorted(folder.glob("*.py"))]


def lookup(module: str, name: str) -> object:
    """Import a name as `from module import name` does; `MISSING` if it fails."""
    try:
        parent = import_module(module)
        return getattr(parent, name) if hasattr(parent, name) else import_module(f"{module}.{name}")
    except ImportError:
        return MISSING


def uses(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each module of the package and the name of it that a script uses."""
    tree = ast.parse(path.read_text(), path.name)
    modules: dict[str, ModuleType] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == PACKAGE:
            for alias in node.names:
                yield str(node.module), alias.name
                found = lookup(str(node.module), alias.name)
                if isinstance(found, ModuleType):
                    modules[alias.asname or alias.name] = found
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from COMMAND.findall(node.value)
            yield from PROGRAM.findall(node.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield modules[node.value.id].__name__, node.attr


def missing_names(path: Path) -> list[str]:
    return [f"{path.name}: {module}.{name}" for module, name in uses(path) if lookup(module, name) is MISSING]


def import_errors(path: Path) -> list[str]:
    """Import a script; return what it lacks."""
    if path.stem in NEEDS_OTHERS:
        return []
    try:
        import_module(path.stem)
    except ImportError as error:
        return [f"{path.name}: {error}"]
    return []


class Absent(MetaPathFinder):
    """Makes packages that are installed here look as if they were not."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def modules_without_wheels() -> set[str]:
    """List the modules of our dependencies that are absent where benchmarks/gpu.sh runs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wheels = (ROOT / "benchmarks/gpu_wheels.txt").read_text().split()
    there = ON_A_GPU_MACHINE | {wheel.partition("==")[0] for wheel in wheels}
    lacking = {re.split(r"[<>=]", requirement)[0] for requirement in project["dependencies"]} - there
    owners = packages_distributions().items()
    return {name for name, packages in owners if lacking & {each.replace("_", "-") for each in packages}}


def missing_on_a_gpu_machine() -> str | None:
    """Import what benchmarks/gpu.py and `dqn train` do, as there; return the module that is missing."""
    absent = Absent(modules_without_wheels())
    sys.meta_path.insert(0, absent)
    try:
        for name in ("gpu", *(f"{PACKAGE}.{each}" for each in TRAINING)):
            import_module(name)
    except ModuleNotFoundError as error:
        return error.name
    finally:
        sys.meta_path.remove(absent)
    return None


def main() -> None:
    sys.path[:0] = map(str, FOLDERS)
    on_a_gpu_machine = missing_on_a_gpu_machine()
    names = [name for path in scripts() for name in (*missing_names(path), *import_errors(path))]
    sys.stdout.write(json.dumps({"missing": names, "missing_on_a_gpu_machine": on_a_gpu_machine}))


if __name__ == "__main__":
    main()
