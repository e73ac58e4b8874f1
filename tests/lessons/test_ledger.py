"""The ledger itself: no row is missing, every row has tests, and every fault one that catches it."""

import ast

from ledger import PACKAGE, PAGE, TESTS, load_ledger, marks_of_tests, page

ROWS = load_ledger()
LESSONS = {
    *(f"D{number:02}" for number in range(1, 23)),
    *(f"M{number:02}" for number in range(1, 11)),
    *(f"W{number:02}" for number in range(1, 15)),
    *(f"P{number:02}" for number in range(1, 17)),
    *(f"H{number:02}" for number in range(1, 11)),
}
"""Every lesson, but for those under D-ok, each of which has a row named D-ok.WORD."""


def lessons() -> list[str]:
    return [lesson for row in ROWS for lesson in row.id.split(", ")]


def test_every_lesson_has_exactly_one_row() -> None:
    assert len(lessons()) == len(set(lessons()))
    assert {lesson for lesson in lessons() if not lesson.startswith("D-ok.")} == LESSONS
    assert len([lesson for lesson in lessons() if lesson.startswith("D-ok.")]) == 10


def test_every_row_has_tests_or_says_what_it_waits_for() -> None:
    assert [row.id for row in ROWS if not (row.tests or row.waits)] == []


def test_every_marker_names_a_row() -> None:
    known = set(lessons())
    assert {node: marks for node, marks in marks_of_tests().items() if not known.issuperset(marks)} == {}


def test_tests_of_the_ledger_exist_and_are_run() -> None:
    files = {node.partition("::")[0] for row in ROWS for node in row.tests}
    names = {
        file: [node.name for node in ast.parse((TESTS / file).read_text()).body if hasattr(node, "name")]
        for file in files
    }
    twice = {file: name for file in files for name in names[file] if names[file].count(name) > 1}
    assert twice == {}, "of two functions of one name the first is never run"
    nodes = {node for row in ROWS for node in row.tests}
    assert nodes - {f"{file}::{name}" for file in files for name in names[file]} == set()


def test_every_row_with_tests_has_a_fault_that_they_catch() -> None:
    assert [row.id for row in ROWS if bool(row.tests) != bool(row.faults)] == []


def test_text_that_a_fault_replaces_occurs_once() -> None:
    counts = {
        (row.id, fault.what): (PACKAGE / fault.file).read_text().count(fault.was)
        for row in ROWS
        for fault in row.faults
    }
    assert {fault: count for fault, count in counts.items() if count != 1} == {}, "write these faults anew"


def test_page_is_made_of_the_ledger() -> None:
    assert PAGE.read_text() == page(ROWS), "python tests/lessons/ledger.py"
