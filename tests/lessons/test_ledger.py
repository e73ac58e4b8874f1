"""The ledger itself: no row is missing, and each names tests that exist."""

import ast
from functools import cache

import pytest
from ledger import PACKAGE, PAGE, TESTS, Row, load_ledger, page

ROWS = load_ledger()
LESSONS = {
    *(f"D{number:02}" for number in range(1, 23)),
    *(f"M{number:02}" for number in range(1, 11)),
    *(f"W{number:02}" for number in range(1, 15)),
    *(f"P{number:02}" for number in range(1, 17)),
    *(f"H{number:02}" for number in range(1, 11)),
}
"""Every lesson, but for those under D-ok, each of which has a row named D-ok.WORD."""


@cache
def names_of(file: str) -> set[str]:
    """Return the names of a file's tests, which lie at its top level."""
    found = [
        node.name for node in ast.parse((TESTS / file).read_text()).body if isinstance(node, ast.FunctionDef)
    ]
    assert len(found) == len(set(found)), f"{file}: of two functions of one name the first is never run"
    return set(found)


def test_every_lesson_has_exactly_one_row() -> None:
    lessons = [lesson for row in ROWS for lesson in row.id.split(", ")]
    assert len(lessons) == len(set(lessons))
    assert {lesson for lesson in lessons if not lesson.startswith("D-ok.")} == LESSONS
    assert len([lesson for lesson in lessons if lesson.startswith("D-ok.")]) == 10


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_row_names_tests_that_exist_or_says_what_it_waits_for(row: Row) -> None:
    assert row.tests or row.waits
    for node in [*row.tests, *(fault.caught_by for fault in row.faults)]:
        file, _, name = node.partition("::")
        assert name.partition("[")[0] in names_of(file), f"{node} is no test"


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_row_that_has_tests_has_a_fault_that_they_catch(row: Row) -> None:
    assert bool(row.tests) == bool(row.faults)
    assert {fault.caught_by.partition("[")[0] for fault in row.faults} <= set(row.tests)


@pytest.mark.parametrize("row", ROWS, ids=[row.id for row in ROWS])
def test_text_that_a_fault_replaces_occurs_once(row: Row) -> None:
    for fault in row.faults:
        assert (PACKAGE / fault.file).read_text().count(fault.was) == 1, f"write {fault.what!r} anew"


def test_page_is_made_of_the_ledger() -> None:
    assert PAGE.read_text() == page(ROWS), "python tests/lessons/ledger.py"
