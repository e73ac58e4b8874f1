"""The ledger of lessons as values, and its page in docs/: `python tests/lessons/ledger.py` writes it."""

import ast
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "atari_dqn"
PAGE = TESTS.parent / "docs" / "lessons.md"

_HEAD = """\
# Lessons

Each row is a requirement from a fault that reviewers found in one of four earlier systems, or that hostile
use found in this project: a DQN for Atari (D; D-ok marks what it did right), a multi-process actor–learner
(M), a world-model fine-tuning pipeline (W), a recurrent PPO (P), and this project (H). The tests of a row are
those that carry its id, as `@pytest.mark.fault("D03")`.

The tests themselves are tested: `pytest -m 'slow or thorough' tests/lessons` puts each fault of the last
column back into a copy of the package, one at a time, and a test of the row must then fail. Rows and faults
are kept in `tests/lessons/ledger.toml`, from which `python tests/lessons/ledger.py` makes this page.

| row | requirement | tests | faults put back |
|---|---|---|---|
"""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A way to break the package: `was`, which occurs once in `file`, becomes `becomes`."""

    what: str
    file: str
    was: str
    becomes: str
    caught_by: str
    """Node id of the test that must fail."""

    def put_into(self, package: Path) -> None:
        """Break a copy of the package."""
        path = package / self.file
        source = path.read_text()
        assert source.count(self.was) == 1, f"{self.file} has changed: write the fault {self.what!r} anew"
        path.write_text(source.replace(self.was, self.becomes))


@dataclass(frozen=True, kw_only=True)
class Row:
    """One lesson."""

    id: str
    requirement: str
    tests: tuple[str, ...]
    """Node ids, from tests/ on, of the tests that carry an id of the row."""
    waits: str
    """What cannot be tested yet, and why; empty where nothing waits."""
    faults: tuple[Fault, ...]


def load_ledger() -> list[Row]:
    """Return every row, in order."""
    text = Path(__file__).with_name("ledger.toml").read_text()
    return [_row(table) for table in tomllib.loads(text)["row"]]


def _row(table: dict) -> Row:
    row_id = table["id"]
    tests = marked_tests(row_id)
    faults = tuple(_fault(fault, tests) for fault in table.pop("fault", ()))
    return Row(tests=tests, faults=faults, **{"waits": "", **table})


def _fault(table: dict, tests: tuple[str, ...]) -> Fault:
    """Return a fault. The test that catches it is the first of its row, or is named there."""
    name, bracket, values = table.pop("caught_by", tests[0] if tests else "").partition("[")
    found = [node for node in tests if node == name or node.endswith((f"::{name}", f"/{name}"))]
    assert len(found) == 1, f"{name}: names {len(found)} tests of its row"
    return Fault(becomes=table.pop("is"), caught_by=found[0] + bracket + values, **table)


def marked_tests(row_id: str) -> tuple[str, ...]:
    """Return the node ids of all tests that carry an id of a row."""
    ids = row_id.split(", ")
    return tuple(node for node, marks in marks_of_tests().items() if any(mark in ids for mark in marks))


@cache
def marks_of_tests() -> dict[str, tuple[str, ...]]:
    """Return the fault ids of each test that has any, by its node id."""
    return {
        f"{path.relative_to(TESTS).as_posix()}::{function.name}": marks
        for path in sorted(TESTS.rglob("test_*.py"))
        if "mark.fault(" in path.read_text()
        for function in ast.parse(path.read_text()).body
        if isinstance(function, ast.FunctionDef) and (marks := tuple(_marks(function)))
    }


def _marks(function: ast.FunctionDef) -> Iterator[str]:
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.fault":
            yield from (ast.literal_eval(argument) for argument in decorator.args)


def page(rows: Iterable[Row]) -> str:
    """Return docs/lessons.md."""
    return _HEAD + "".join(
        f"| {row.id} | {row.requirement} | {_tests(row)} | {_faults(row)} |\n" for row in rows
    )


def _tests(row: Row) -> str:
    waits = [f"*waits: {row.waits}*"] if row.waits else []
    return "<br>".join([*map(_link, row.tests), *waits])


def _link(node: str) -> str:
    file, _, name = node.partition("::")
    return f"[{re.sub(r'^test_', '', name)}](../tests/{file})"


def _faults(row: Row) -> str:
    return "<br>".join(fault.what for fault in row.faults)


if __name__ == "__main__":
    PAGE.write_text(page(load_ledger()))
