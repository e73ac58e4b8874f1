"""Files get names that nothing has, also while others create files of the same names."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from atari_dqn.errors import UserError
from atari_dqn.files.new_files import place_new, refuse_leading_hyphen, write_new, write_numbered

LINK = os.link


def no_links(first: Path, second: Path) -> None:
    raise OSError(errno.EPERM, "Operation not permitted", str(first), None, str(second))


@pytest.fixture(params=["links", "no links"], autouse=True)
def file_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "no links":
        monkeypatch.setattr(os, "link", no_links)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_new_file_is_whole_and_alone(tmp_path: Path) -> None:
    assert write_new(tmp_path / "a.json", b"mine")
    assert contents(tmp_path) == {"a.json": b"mine"}


def test_existing_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"theirs")
    assert not write_new(tmp_path / "a.json", b"mine")
    assert contents(tmp_path) == {"a.json": b"theirs"}


def test_commands_that_find_a_name_free_at_once_keep_every_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os.path, "lexists", lambda _: False)  # as before any of them has written
    written = [b"%d" % number * 1_000 for number in range(16)]
    with ThreadPoolExecutor(16) as threads:
        names = list(threads.map(lambda data: write_numbered(tmp_path / "a.json", data), written))
    assert [name.read_bytes() for name in names] == written
    assert {name.name for name in names} == {"a.json", *(f"a_{number}.json" for number in range(2, 17))}


def test_number_is_free_for_the_companion_too(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"theirs")
    (tmp_path / "a_2.json").write_bytes(b"theirs")
    assert write_numbered(tmp_path / "a.json", b"mine", companion=".mp4") == tmp_path / "a_3.json"


def test_success_that_a_network_disk_reports_as_a_conflict_is_a_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost_answer(first: Path, second: Path) -> None:
        LINK(first, second)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "link", lost_answer)
    assert write_new(tmp_path / "a.json", b"mine")


def test_failed_replacement_leaves_no_empty_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(FileNotFoundError):
        place_new(tmp_path / "absent", tmp_path / "a.json")
    assert contents(tmp_path) == {}


def test_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"cannot write \S+/absent/a\.json: no such file"):
        write_new(tmp_path / "absent" / "a.json", b"mine")


@pytest.mark.parametrize("name", ["-x", "--plain", "-x/run"])
def test_name_that_commands_would_take_for_an_option_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=rf"--folder: found '{name}', which other commands"):
        refuse_leading_hyphen(Path(name), where="--folder")


@pytest.mark.parametrize(
    ("name", "is_refused"), [("runs/-x", False), ("/-x", False), ("x-", False), ("-x", True)]
)
def test_only_a_hyphen_at_the_beginning_is_refused(name: str, is_refused: bool) -> None:
    errors: list[UserError] = []
    try:
        refuse_leading_hyphen(Path(name), where="--folder")
    except UserError as error:
        errors.append(error)
    assert bool(errors) == is_refused
