"""`dqn compare` of a folder in which most runs are broken."""

import json

import pytest
from broken_runs import GOOD, KINDS, BrokenRuns, make_broken_runs
from forked import CommandServer

NOT_READ = {kind for kind in KINDS if kind.startswith("event")} | {
    "budget raised to a word",
    "gate of no state",
    "step infinite",
    "name half a letter",
}
"""Broken in what a comparison does not need: the log, the column of steps, a name that is shown escaped."""
IN_A_WARNING = {"mean of 400 digits"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> BrokenRuns:
    return make_broken_runs(tmp_path_factory.mktemp("broken"))


@pytest.fixture(scope="module")
def printed(command_server: CommandServer, runs: BrokenRuns) -> tuple[str, dict]:
    """What is printed, and the document."""
    document = runs.root.parent / "compared.json"
    done = command_server.run("compare", runs.root, "--json", document, env={"COLUMNS": "2000"})
    assert done.code == 0, done.err[-2000:]
    return done.out, json.loads(document.read_text())


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - NOT_READ - IN_A_WARNING))
def test_a_broken_run_is_left_out_and_named(printed: tuple[str, dict], kind: str) -> None:
    faults = [line for line in printed[0].splitlines() if "left out: " in line]
    assert len([line for line in faults if f"/{kind}/" in line or f"/{kind}: " in line]) == 1


def test_no_character_that_steers_is_printed(printed: tuple[str, dict]) -> None:
    assert all(line.isprintable() for line in printed[0].splitlines())


@pytest.mark.parametrize("name", GOOD)
def test_a_sound_run_is_compared(runs: BrokenRuns, printed: tuple[str, dict], name: str) -> None:
    assert name in json.dumps(printed[1])
