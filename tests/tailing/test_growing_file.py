from pathlib import Path

import pytest

from atari_dqn.run.tailing.growing_file import GrowingFile


def test_each_whole_line_is_handed_out_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("a\nb\n")
    file = GrowingFile(path)
    assert file.new_lines() == ["a", "b"]
    assert file.new_lines() == []
    with path.open("a") as end:
        end.write("c\n")
    assert file.new_lines() == ["c"]


def test_a_line_cut_in_the_middle_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes("a\n1,é".encode()[:-1])
    file = GrowingFile(path)
    assert file.new_lines() == ["a"]
    with path.open("ab") as end:
        end.write("é".encode()[1:] + b",2\n")
    assert file.new_lines() == ["1,é,2"]


@pytest.mark.parametrize("lines", [["a"], ["a", "c", "d"]], ids=["shorter", "grown again"])
def test_a_file_that_was_cut_back_begins_anew(tmp_path: Path, lines: list[str]) -> None:
    path = tmp_path / "log"
    path.write_text("a\nb\n")
    file = GrowingFile(path)
    file.new_lines()
    path.write_text("".join(f"{line}\n" for line in lines))
    assert file.new_lines() is None
    assert file.new_lines() == lines


def test_a_file_that_is_not_there_yet_has_no_lines(tmp_path: Path) -> None:
    assert GrowingFile(tmp_path / "log").new_lines() == []


def test_a_long_file_is_begun_near_its_end_with_its_header(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("header\n" + "".join(f"{number:04}\n" for number in range(100)))
    file = GrowingFile(path, last_bytes=12)
    assert file.new_lines() == ["header", "0098", "0099"]
    with path.open("a") as end:
        end.write("0100\n")
    assert file.new_lines() == ["0100"]
