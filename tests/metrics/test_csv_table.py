import errno
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.telemetry.csv_table import CsvTable, cell

Kept = Callable[[Any], Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table.csv"


def test_new_table_begins_with_its_header(path: Path, kept: Kept) -> None:
    kept(CsvTable(path, ["step", "loss"]))
    assert path.read_bytes() == b"step,loss\n"


def test_row_is_written_in_declared_order_whatever_order_it_came_in(path: Path, kept: Kept) -> None:
    kept(CsvTable(path, ["step", "loss"])).append({"loss": 0.25, "step": 1000})
    assert path.read_bytes() == b"step,loss\n1000,0.25\n"


def test_table_with_former_column_names_is_continued_under_its_header(path: Path, kept: Kept) -> None:
    path.write_bytes(b"step,lane\n1,0\n")
    table = kept(CsvTable(path, ["step", "environment"], former=["step", "lane"]))
    table.append({"step": 2, "environment": 7})
    assert path.read_bytes() == b"step,lane\n1,0\n2,7\n"
    table.restart()
    assert path.read_bytes() == b"step,lane\n"


def test_missing_column_is_an_error_naming_it(path: Path, kept: Kept) -> None:
    table = kept(CsvTable(path, ["step", "loss", "mean_q"]))
    with pytest.raises(ValueError, match="missing: loss, mean_q"):
        table.append({"step": 1})
    assert path.read_bytes() == b"step,loss,mean_q\n"


def test_undeclared_column_is_an_error_naming_it(path: Path, kept: Kept) -> None:
    table = kept(CsvTable(path, ["step"]))
    with pytest.raises(ValueError, match="undeclared: grad_norm"):
        table.append({"step": 1, "grad_norm": 2.0})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (0.1, "0.1"),
        (1e-12, "1e-12"),
        (1 / 3, "0.3333333333333333"),
        (math.nan, ""),
        (math.inf, "inf"),
        (-21.0, "-21.0"),
        (np.float64(0.1), "0.1"),
        (np.float32(0.5), "0.5"),
        (np.int64(7), "7"),
        ("game_over", "game_over"),
    ],
)
def test_cell_is_the_shortest_text_that_reads_back_exactly(value: object, text: str) -> None:
    assert cell(value) == text


def test_a_cell_that_is_neither_number_nor_word_is_refused() -> None:
    with pytest.raises(TypeError, match="got list"):
        cell([1.0])


def test_word_with_a_comma_stays_one_cell(path: Path, kept: Kept) -> None:
    kept(CsvTable(path, ["word"])).append({"word": "a,b"})
    assert path.read_bytes() == b'word\n"a,b"\n'


def test_row_is_in_the_file_before_the_table_is_closed(path: Path, kept: Kept) -> None:
    table = kept(CsvTable(path, ["step"]))
    table.append({"step": 1})
    assert path.read_bytes() == b"step\n1\n"


def test_existing_table_is_continued_without_a_second_header(path: Path, kept: Kept) -> None:
    for step in (1, 2):
        table = kept(CsvTable(path, ["step"]))
        table.append({"step": step})
        table.close()
    assert path.read_bytes() == b"step\n1\n2\n"


def test_existing_table_of_other_columns_is_damaged(path: Path, kept: Kept) -> None:
    path.write_bytes(b"step,loss\n")
    with pytest.raises(DamagedError, match="header"):
        kept(CsvTable(path, ["step"]))
    assert path.read_bytes() == b"step,loss\n"


def test_header_torn_by_a_crash_is_written_anew(path: Path, kept: Kept) -> None:
    path.write_bytes(b"step,lo")
    kept(CsvTable(path, ["step", "loss"]))
    assert path.read_bytes() == b"step,loss\n"


def test_truncate_cuts_the_rows_after_an_offset(path: Path, kept: Kept) -> None:
    table = kept(CsvTable(path, ["step"]))
    table.append({"step": 1})
    offset = table.offset()
    table.append({"step": 2})
    table.truncate(offset)
    table.append({"step": 3})
    assert path.read_bytes() == b"step\n1\n3\n"


def test_offset_counts_bytes(path: Path, kept: Kept) -> None:
    table = kept(CsvTable(path, ["step"]))
    table.append({"step": 10})
    assert table.offset() == 8


def test_truncate_mends_a_last_line_torn_by_a_crash(path: Path, kept: Kept) -> None:
    path.write_bytes(b"step,loss\n1,0.5\n2,0.")
    table = kept(CsvTable(path, ["step", "loss"]))
    table.truncate(16)
    table.append({"step": 2, "loss": 0.75})
    assert path.read_bytes() == b"step,loss\n1,0.5\n2,0.75\n"


def test_truncate_beyond_the_end_is_damaged(path: Path, kept: Kept) -> None:
    table = kept(CsvTable(path, ["step"]))
    with pytest.raises(DamagedError, match="has 5 bytes, but 6 at its checkpoint"):
        table.truncate(6)


@pytest.mark.parametrize("offset", [0, 4, 6])
def test_truncate_where_no_row_ends_is_damaged(path: Path, offset: int, kept: Kept) -> None:
    path.write_bytes(b"step\n10\n")
    with pytest.raises(DamagedError, match=f"no row ends at byte {offset}"):
        kept(CsvTable(path, ["step"])).truncate(offset)
    assert path.read_bytes() == b"step\n10\n"


def test_row_that_the_system_takes_in_parts_is_written_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch, kept: Kept
) -> None:
    table = kept(CsvTable(path, ["step"]))
    raw = table._file._file

    class Slow:
        """The file on a system that writes two bytes at a time."""

        def __getattr__(self, name: str) -> object:
            return getattr(raw, name)

        def write(self, data: bytes) -> int:
            return os.write(raw.fileno(), data[:2])

    monkeypatch.setattr(table._file, "_file", Slow())
    table.append({"step": 123456})
    assert path.read_bytes() == b"step\n123456\n"


def test_row_that_a_full_disk_takes_in_part_is_taken_back(
    path: Path, monkeypatch: pytest.MonkeyPatch, kept: Kept
) -> None:
    table = kept(CsvTable(path, ["step"]))
    raw = table._file._file

    class Half:
        """The file, on a disk with room for three bytes."""

        def __getattr__(self, name: str) -> object:
            return getattr(raw, name)

        def write(self, data: bytes) -> int:
            if len(data) < 7:  # of which three are written
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return os.write(raw.fileno(), data[:3])

    monkeypatch.setattr(table._file, "_file", Half())
    with pytest.raises(UserError, match="no space left"):
        table.append({"step": 123456})
    assert path.read_bytes() == b"step\n"
