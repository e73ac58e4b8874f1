"""Tables that are missing or have no whole header, which are not shown as tables without rows."""

from collections.abc import Callable
from pathlib import Path

import pytest
from broken_runs import make_run
from rich.console import Console

from atari_dqn.errors import DamagedError
from atari_dqn.run.archive.manifest import MANIFEST
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.log_damage import log_damage, notice_of_damage, suggesting_log_remedy
from atari_dqn.run.tailing.status import RunStatus
from atari_dqn.view.run_state import status_text
from atari_dqn.view.summary import summary_table

DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (Path.unlink, "missing"),
    "empty": (lambda path: path.write_text(""), "its header is cut or damaged"),
    "cut": (lambda path: path.write_text(path.read_text()[:60]), "its header is cut or damaged"),
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", [3.0, 12.0])


def status_of(run: Path) -> RunStatus:
    status = RunStatus(run)
    status.refresh()
    return status


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_table_is_named_with_what_is_wrong(run: Path, kind: str) -> None:
    damage, said = DAMAGES[kind]
    damage(run / "eval_log.csv")
    assert log_damage(status_of(run)) == f"eval_log.csv: {said}"


def test_a_table_without_rows_is_not_damaged(run: Path) -> None:
    table = run / "eval_log.csv"
    table.write_text(table.read_text().partition("\n")[0] + "\n")
    assert log_damage(status_of(run)) == ""


def test_a_run_that_has_not_begun_is_not_damaged(run: Path) -> None:
    for table in run.glob("*.csv"):
        table.unlink()
    assert log_damage(status_of(run)) == ""


def test_the_lines_of_a_run_say_the_damage_and_what_to_do(run: Path) -> None:
    (run / "eval_log.csv").unlink()
    lines = dict(
        line.split("  ", 1) for line in status_text("run", status_of(run)).plain.splitlines() if line
    )
    assert lines["last evaluation"] == "not known"
    assert lines["damaged"].strip() == (
        f"eval_log.csv: missing; restore it, or `dqn resume {run} --set-aside-damaged-logs` moves it to "
        "set_aside/ and continues with a new one"
    )


def test_a_run_without_evaluations_yet_has_none(run: Path) -> None:
    table = run / "eval_log.csv"
    table.write_text(table.read_text().partition("\n")[0] + "\n")
    assert "last evaluation  none yet" in status_text("run", status_of(run)).plain.splitlines()


def test_an_import_is_imported_again(run: Path) -> None:
    (run / "eval_log.csv").unlink()
    (run / MANIFEST).touch()
    status = status_of(run)
    assert notice_of_damage(status, "eval_log.csv: missing").message == (
        "eval_log.csv: missing; import its archive again, or first export it again"
    )


def test_the_table_of_runs_names_the_damage(run: Path) -> None:
    (run / "eval_log.csv").unlink()
    console = Console(width=100)
    with console.capture() as captured:
        console.print(summary_table({run: status_of(run)}, columns=100))
    assert "run: eval_log.csv: missing" in captured.get().splitlines()


def test_an_error_of_a_damaged_header_says_what_to_do(run: Path) -> None:
    table = run / "train_log.csv"
    table.write_text("step,env\n" + table.read_text())
    with pytest.raises(DamagedError, match=r"damaged: no .*\nrestore it, or `dqn resume"):  # noqa: SIM117
        with suggesting_log_remedy(run):
            status_of(run)


def test_an_error_of_another_file_is_left_as_it_is(run: Path) -> None:
    RunDirectory(run).spec.write_text("no")
    with pytest.raises(Exception, match=r"spec.toml") as caught, suggesting_log_remedy(run):
        status_of(run)
    assert "--set-aside-damaged-logs" not in str(caught.value)
