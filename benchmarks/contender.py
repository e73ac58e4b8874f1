"""A system that is measured: its environment, its program, and a run of it for some seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import instruction_sets
from new_shell import environment_of_a_new_shell

HERE = Path(__file__).parent
SETTINGS = {
    "epsilon": 0.1,
    "capacity_steps": 10_000,
    "prefill_steps": 1_000,
    "target_period_updates": 2_500,
    "warm_up_updates": 50,
}
"""The same for all: a small replay, because the prefill is not measured and draws cost the same."""
CHECK = {"seconds": 0.5, "prefill_steps": 500, "warm_up_updates": 4}
"""Of the short training whose libraries report what they compute with, which is too slow to be measured."""
RESULT = '{"frames_per_second"'
"""How the line begins with which each system's program reports."""


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A system: the program that trains it, its interpreter, and options in addition to the common ones.

    An option with several values is given several times.
    """

    python: Path
    script: str
    options: Mapping[str, object | Sequence[object]] = field(default_factory=dict)


def prepare(venv: Path, packages: Sequence[str], *, without_dependencies: Sequence[str] = ()) -> Path:
    """Return the interpreter of an environment with these packages and our own version of torch.

    What is `without_dependencies` is installed alone, whatever versions of Python it asks for.
    """
    python, ready = venv / "bin" / "python", venv / "ready"
    wanted = "\n".join([*packages, *without_dependencies, version("torch")]) + "\n"
    if not ready.exists() or ready.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        torch = f"torch=={version('torch').partition('+')[0]}"
        install = [python, "-m", "pip", "install", "--quiet"]
        subprocess.run([*install, torch], check=True)  # first, so that pip keeps its build
        subprocess.run([*install, torch, *packages], check=True)
        if without_dependencies:
            bare = ["--no-deps", "--ignore-requires-python"]
            subprocess.run([*install, *bare, *without_dependencies], check=True)
        ready.write_text(wanted)
    return python


def measure(contender: Contender, *, seconds: float, threads: int, isa: str = "native") -> dict[str, Any]:
    """Run a contender once and parse its output."""
    options = {"seconds": seconds, "threads": threads, **SETTINGS, **contender.options}
    return parse(output_of(contender, options, environment(threads, isa)))


def output_of(contender: Contender, options: Mapping[str, object], variables: Mapping[str, str]) -> str:
    """Run a contender's program and return its standard output."""
    return subprocess.run(
        [contender.python, HERE / contender.script, *words(options)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=variables,
    ).stdout


def parse(output: str) -> dict[str, Any]:
    """Return the last result in a program's output; logs of libraries may surround it, also in its line."""
    result: dict[str, Any] = json.JSONDecoder().raw_decode(output, output.rindex(RESULT))[0]
    return result


def check(name: str, contender: Contender, *, threads: int, isa: str) -> dict[str, Any]:
    """Train shortly with the libraries' logs on, and return what they report.

    End the program where a report contradicts the instruction set.
    """
    options = {"threads": threads, **SETTINGS, **contender.options, **CHECK}
    output = output_of(contender, options, environment(threads, isa) | instruction_sets.VERBOSE)
    own = {key: parse(output)[key] for key in instruction_sets.OF_WORKERS if key in parse(output)}
    report = {**own, **instruction_sets.library_reports(output)}
    if found := instruction_sets.contradictions(isa, report):
        raise SystemExit(f"{name} does not keep to {isa}: {'; '.join(found)}")
    return report


def words(options: Mapping[str, object]) -> list[str]:
    """Return options as words of a command line."""
    found = []
    for key, value in options.items():
        for each in value if isinstance(value, (list, tuple)) else (value,):
            found += [f"--{key.replace('_', '-')}", str(each)]
    return found


def environment(threads: int, isa: str = "native") -> dict[str, str]:
    """Return this process's environment for as many torch threads and an instruction set, without a GPU.

    How threads wait is left to each system.
    """
    shell = environment_of_a_new_shell()
    kept = {name: value for name, value in shell.items() if name not in instruction_sets.NAMES}
    few = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    return {**kept, **few, **instruction_sets.VARIABLES[isa], "CUDA_VISIBLE_DEVICES": ""}
