"""Text that changes: redrawn in a terminal, a line for each change without one."""

import io
from collections.abc import Iterator

import pytest
from rich.console import Console

from atari_dqn.view import wrapping
from atari_dqn.view.text_view import LiveTextView, PlainTextView, text_view


def test_without_a_terminal_each_change_is_a_line():
    stream = io.StringIO()
    changes = [["begins"], [], ["ends"]]

    def news() -> Iterator[str]:
        yield from changes.pop(0)

    view = text_view(lambda columns, rows: [], news, stream, plain=True)
    view.report("a sentence with \x1b[2J")
    view.show()
    view.close()
    assert isinstance(view, PlainTextView)
    assert stream.getvalue() == "begins\na sentence with \\x1b[2J\nends\n"


def test_lines_of_changes_in_a_terminal_are_broken_at_its_width(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(wrapping, "terminal_columns", lambda stream: 20)
    stream = io.StringIO()
    PlainTextView(lambda: ["a sentence that is longer"], stream)
    assert stream.getvalue() == "a sentence that is\n  longer\n"


def test_in_a_terminal_the_screen_is_drawn_with_its_size_and_the_reports_below():
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=40, height=10)
    sizes: list[tuple[int, int]] = []

    def screen(columns: int, rows: int) -> list[str]:
        sizes.append((columns, rows))
        return ["title", "a line"]

    view = LiveTextView(screen, console)
    view.report("something happened")
    view.close()
    assert sizes[0] == (40, 10)
    assert sizes[-1] == (40, 9)
    last = output.getvalue().rpartition("title")[2]
    assert last.index("a line") < last.index("something happened")


def test_a_long_report_is_whole_and_its_lines_are_counted():
    console = Console(file=io.StringIO(), force_terminal=True, width=40, height=10)
    sizes: list[tuple[int, int]] = []

    def screen(columns: int, rows: int) -> list[str]:
        sizes.append((columns, rows))
        return ["title", "a line"]

    view = LiveTextView(screen, console)
    sentence = "trial 12 failed: the run was killed by SIGKILL, perhaps for its memory"
    view.report(sentence)
    page = Console(file=io.StringIO(), width=40, height=10)
    page.print(view._drawn())
    view.close()
    assert isinstance(page.file, io.StringIO)
    assert sentence in " ".join(page.file.getvalue().split())
    assert sizes[-1] == (40, 8)
