"""`dqn watch` of a folder in which most runs are broken."""

from pathlib import Path

import pytest
from broken_runs import GOOD, KINDS, NAMES, BrokenRuns, make_broken_runs
from forked import CommandServer

from atari_dqn.cli.watch import watch
from atari_dqn.errors import DamagedError
from atari_dqn.formatting import printable

UNHARMED = {"budget raised to a word"}
"""Not shown as broken, because what is damaged is not needed."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> BrokenRuns:
    return make_broken_runs(tmp_path_factory.mktemp("broken"))


def watched(server: CommandServer, *paths: Path) -> str:
    done = server.run("watch", "--once", *paths)
    assert done.code == 0, done.err[-2000:]
    return done.out


@pytest.fixture(scope="module")
def of_folder(command_server: CommandServer, runs: BrokenRuns) -> str:
    return watched(command_server, runs.root)


@pytest.fixture(scope="module")
def of_paths(command_server: CommandServer, runs: BrokenRuns) -> str:
    return watched(command_server, *runs.all)


@pytest.mark.fault("H04")
def test_sound_runs_are_shown_whatever_the_others_are_like(of_folder: str, of_paths: str) -> None:
    for printed in (of_folder, of_paths):
        lines = [line for line in printed.splitlines() if line.strip().startswith(GOOD)]
        assert [line.split()[2] for line in lines] == ["running"] * 3


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - UNHARMED))
def test_a_broken_run_is_named_with_the_reason(of_folder: str, of_paths: str, kind: str) -> None:
    for printed in (of_folder, of_paths):
        reasons = [line for line in printed.splitlines() if line.startswith(f"{kind}: ")]
        assert len(reasons) == 1


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_that_steers_is_shown_escaped(of_folder: str, name: str) -> None:
    assert any(line.strip().startswith(printable(name)) for line in of_folder.splitlines())


def test_no_character_that_steers_is_printed(of_folder: str) -> None:
    assert all(line.isprintable() for line in of_folder.splitlines())


@pytest.mark.parametrize(
    "kind", ["spec a pipe", "spec of 1 TB", "provenance a pipe", "spec a folder", "events a pipe"]
)
def test_watching_one_broken_run_is_an_error_that_names_the_file(runs: BrokenRuns, kind: str) -> None:
    with pytest.raises(DamagedError, match=r"(toml|json|jsonl): (cannot be read: )?is "):
        watch([runs.broken[kind]], every="1", once=True, plain=True)
