"""The model of a disk that loses what was not flushed, held against folders worked out by hand."""

from pathlib import Path

from lost_writes import Call, Disk, ModelDisk, power_failures

FOLDER = Path("/place")
WRITTEN = [
    Call(kind="create", path="/place/a"),
    Call(kind="write", path="/place/a", offset=0, data=b"hello"),
]
FLUSHED = [*WRITTEN, Call(kind="fsync", path="/place/a")]


def held(calls: list[Call], disk: Disk) -> dict[str, tuple[str, bytes]]:
    model = ModelDisk(FOLDER)
    for call in calls:
        model.apply(call)
    return model.files(disk)


def test_strict_disk_holds_no_name_that_its_folder_did_not_flush() -> None:
    assert held(FLUSHED, Disk.STRICT) == {}


def test_strict_disk_holds_a_flushed_name_with_the_bytes_that_were_flushed() -> None:
    later = Call(kind="write", path="/place/a", offset=5, data=b"!")
    calls = [*FLUSHED, later, Call(kind="fsync", path="/place")]
    assert held(calls, Disk.STRICT) == {"a": ("file", b"hello")}


def test_ordered_disk_holds_an_empty_file_where_bytes_were_not_flushed() -> None:
    calls = [*WRITTEN, Call(kind="rename", path="/place/a", other="/place/b")]
    assert held(calls, Disk.ORDERED) == {"b": ("file", b"")}


def test_rename_replaces_its_target() -> None:
    target = Call(kind="create", path="/place/b")
    calls = [*FLUSHED, target, Call(kind="rename", path="/place/a", other="/place/b")]
    assert held(calls, Disk.ORDERED) == {"b": ("file", b"hello")}


def test_strict_disk_holds_the_old_name_until_the_folder_is_flushed() -> None:
    calls = [
        *FLUSHED,
        Call(kind="fsync", path="/place"),
        Call(kind="rename", path="/place/a", other="/place/b"),
        Call(kind="unlink", path="/place/b"),
    ]
    assert held(calls, Disk.STRICT) == {"a": ("file", b"hello")}


def test_truncation_is_lost_until_the_file_is_flushed() -> None:
    calls = [*FLUSHED, Call(kind="truncate", path="/place/a", offset=2)]
    assert held(calls, Disk.ORDERED) == {"a": ("file", b"hello")}
    assert held([*calls, Call(kind="fsync", path="/place/a")], Disk.ORDERED) == {"a": ("file", b"he")}


def test_linked_file_has_its_bytes_under_both_names() -> None:
    calls = [*FLUSHED, Call(kind="link", path="/place/a", other="/place/b")]
    assert held(calls, Disk.ORDERED) == {"a": ("file", b"hello"), "b": ("file", b"hello")}


def test_every_state_is_found_once() -> None:
    calls = [*FLUSHED, Call(kind="fsync", path="/place"), Call(kind="fsync", path="/place")]
    found = [(failure.calls, failure.disk, failure.files) for failure in power_failures(calls, FOLDER)]
    assert found == [
        (1, Disk.STRICT, {}),
        (1, Disk.ORDERED, {"a": ("file", b"")}),
        (3, Disk.ORDERED, {"a": ("file", b"hello")}),
    ]
