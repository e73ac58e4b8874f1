"""The architecture, held by the source itself: who may import whom, and how large a piece may grow."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import atari_dqn

PACKAGE = Path(atari_dqn.__file__).parent
LAYERS = (
    {"__main__"},
    {"cli"},
    {"api"},
    {"scale"},
    {"verify", "bench", "dashboard"},
    {"train", "view"},
    {"play", "record"},
    {"evaluation"},
    {"actors"},
    {"compare", "assembly"},
    {"run"},
    {"telemetry"},
    {"fast"},
    {"agent", "envs", "replay"},
    {"machine"},
    {"spec"},
    {"files"},
    {"clock", "formatting", "minibatch", "registry", "rng", "schedule"},
    {"__init__", "types", "errors"},
)
"""A unit (a folder or a module of the package) imports units of later layers only."""
DEPTH = {unit: depth for depth, layer in enumerate(LAYERS) for unit in layer}
RICH_UNITS = {"cli", "view"}
TORCH_FREE_UNITS = ("scale", "spec", "registry", "telemetry", "envs", "compare", "files", "machine")
MAX_MODULE_LINES = 300
MAX_FUNCTION_LINES = 45

SOURCES = sorted(PACKAGE.rglob("*.py"))


def unit_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


def imported_modules(source: str) -> Iterator[str]:
    """Yield every module that a source imports, at its top level or within; `from a import b` yields a.b."""
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def imported_units(source: str) -> set[str]:
    parts = [tuple(module.split(".")) for module in imported_modules(source)]
    return {_unit(names[1:2]) for names in parts if names[0] == "atari_dqn"}


@cache
def _unit(names: tuple[str, ...]) -> str:
    """Return the unit of a first name below the package; a name that is no module belongs to `__init__`."""
    candidates = [PACKAGE / f"{name}{suffix}" for name in names for suffix in (".py", "/__init__.py")]
    return names[0] if any(path.exists() for path in candidates) else "__init__"


def breaches(unit: str, source: str) -> list[str]:
    return sorted(
        other
        for other in imported_units(source)
        if other != unit
        and (other not in DEPTH or DEPTH[other] <= DEPTH[unit])
        and (unit, other) != ("__init__", "api")  # types of the names that it imports at their first use
    )


@cache
def parsed(source: str) -> ast.Module:
    return ast.parse(source)


def names_of(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(PACKAGE)) for path in paths]


def test_every_unit_has_a_layer():
    assert {unit_of(path) for path in SOURCES} == set(DEPTH)


def test_imports_point_down():
    found = {
        name: breaches(unit_of(path), path.read_text())
        for name, path in zip(names_of(SOURCES), SOURCES, strict=True)
    }
    assert {name: units for name, units in found.items() if units} == {}


@pytest.mark.parametrize(
    ("unit", "source", "found"),
    [
        ("agent", "from atari_dqn.replay.ring import FrameRing", ["replay"]),
        ("agent", "from atari_dqn.fast.layers import FastNoisyLinear", ["fast"]),
        ("envs", "def f():\n    import atari_dqn.train.loop", ["train"]),
        ("rng", "from atari_dqn import clock", ["clock"]),
        ("spec", "from atari_dqn import __version__\nfrom atari_dqn.types import Environments", []),
        ("train", "from atari_dqn.train.loop import Iteration", []),
        ("agent", "from atari_dqn.agent.rules import huber", []),
    ],
)
def test_an_import_that_points_up_or_sideways_is_seen(unit, source, found):
    assert breaches(unit, source) == found


def test_rich_is_imported_by_views_and_commands_only():
    users = {
        unit_of(path)
        for path in SOURCES
        if any(module.split(".")[0] == "rich" for module in imported_modules(path.read_text()))
    }
    assert users == RICH_UNITS


def modules_of(unit: str) -> list[str]:
    paths = [path for path in SOURCES if unit_of(path) == unit]
    parts = [path.relative_to(PACKAGE.parent).with_suffix("").parts for path in paths]
    return [".".join(names).removesuffix(".__init__") for names in parts]


def test_torch_is_not_imported_by_torch_free_units():
    modules = [name for unit in TORCH_FREE_UNITS for name in modules_of(unit)]
    code = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "    if 'torch' in sys.modules:\n"
        "        sys.exit(f'{name} imports torch')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *modules], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_modules_are_short():
    lines = {
        name: len(path.read_text().splitlines())
        for name, path in zip(names_of(SOURCES), SOURCES, strict=True)
    }
    assert {name: count for name, count in lines.items() if count >= MAX_MODULE_LINES} == {}


def functions_of(source: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - node.lineno + 1


def test_functions_are_short():
    lines = {(path.name, name): count for path in SOURCES for name, count in functions_of(path.read_text())}
    assert {name: count for name, count in lines.items() if count > MAX_FUNCTION_LINES} == {}


def test_a_function_is_measured_from_its_def_to_its_last_line():
    source = "@a\ndef f(\n    x,\n):\n    '''d'''\n    return x\n"
    assert list(functions_of(source)) == [("f", 5)]


FAST_USERS = {"assembly/acceleration.py", "bench/doctor.py"}
"""By name, as text: what imports `fast`, at its top level, within, or by `import_module`."""


@pytest.mark.fault("H10")
def test_fast_is_imported_by_assembly_and_doctor_alone():
    users = {
        name
        for name, path in zip(names_of(SOURCES), SOURCES, strict=True)
        if "atari_dqn.fast" in path.read_text() and unit_of(path) != "fast"
    }
    assert users == FAST_USERS


def closure(module: str) -> set[Path]:
    """Return the files of the package that a module reaches by imports, itself included."""
    found: set[Path] = set()
    waiting = [PACKAGE / module]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for name in imported_modules(path.read_text()):
            parts = name.split(".")
            if parts[0] == "atari_dqn":
                below = [PACKAGE.joinpath(*parts[1:count]).with_suffix(".py") for count in (len(parts), -1)]
                waiting += [each for each in below if each.exists()]
    return found


def lines_of(paths) -> int:
    return sum(len(path.read_text().splitlines()) for path in paths)


@pytest.mark.parametrize(
    ("module", "files", "lines"), [("agent/learner.py", 16, 1_560), ("agent/network.py", 9, 900)]
)
def test_what_an_agent_imports_is_little(module: str, files: int, lines: int):
    reached = closure(module)
    assert len(reached) <= files
    assert lines_of(reached) <= lines


WITH_MEMORY = {
    PACKAGE / "agent" / f"{name}.py"
    for name in ("memory", "recurrent_actor", "sequence_loss", "unroll", "diagnostics")
}
"""The modules of agents with memory, and of diagnostics for them."""


DATA_EFFICIENT = {
    PACKAGE / "agent" / f"{name}.py"
    for name in ("self_prediction", "resets", "redo", "upkeep", "weight_decay")
}
"""The modules of agents that learn much from few frames."""
OF_BTR_AND_PQN = {
    PACKAGE / "agent" / f"{name}.py"
    for name in ("hl_gauss", "impala", "lambda_returns", "layer_norm", "spectral")
}
"""The modules of HL-Gauss, of the networks of BTR and PQN, and of the returns of PQN."""


def test_agent_is_small():
    # 1,700, and what the learner has for a moving target and work between updates, Adam for its decay, an
    # IQN for its three counts of fractions, and the optimizer's state for a module of its own
    others = WITH_MEMORY | DATA_EFFICIENT | OF_BTR_AND_PQN
    assert lines_of({path for path in SOURCES if unit_of(path) == "agent"} - others) <= 1_760


def test_data_efficient_agents_are_small():
    assert lines_of(DATA_EFFICIENT) <= 500


def test_agents_of_btr_and_pqn_are_small():
    assert lines_of(OF_BTR_AND_PQN) <= 400


def test_agents_with_memory_are_small():
    assert lines_of(WITH_MEMORY) <= 600


def test_agents_without_memory_do_not_import_those_with_it():
    modules = ("learner", "network", "actor", "value_kinds", "init")
    assert not set().union(*(closure(f"agent/{name}.py") for name in modules)) & WITH_MEMORY


@pytest.mark.fault("H10")
@pytest.mark.parametrize("word", ["fast", "kernels", "ctypes", "compile", "capture", "data_ptr", "_version"])
def test_agent_is_plain_pytorch(word: str):
    pattern = re.compile(rf"\b{word}", re.IGNORECASE)
    users = [str(path) for path in SOURCES if unit_of(path) == "agent" and pattern.search(path.read_text())]
    assert users == []


def layers_as_text() -> str:
    """Draw the layers, a line each: a unit imports units of the lines below it only."""
    lines = ["   ".join(sorted(layer)) for layer in LAYERS]
    return "\n   ↓\n".join(lines)


def test_the_page_on_architecture_has_the_layers_of_today():
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text()
    assert f"```\n{layers_as_text()}\n```" in page, "put in what `python tests/test_layers.py` prints"


if __name__ == "__main__":
    print(layers_as_text())  # noqa: T201
