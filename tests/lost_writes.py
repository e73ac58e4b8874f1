"""Model what a disk holds after a power failure, by replaying a recording of system calls.

    create · write · truncate · rename · link · unlink · mkdir · symlink    change the current content
    fsync of a file                                                        makes its bytes durable
    fsync of a folder                                                      makes the names in it durable

Two disks are modelled. A strict disk keeps only what an fsync has flushed. An ordered disk, like a
journalling file system, keeps every change of a name at once, but only the bytes that were flushed: a file
that was renamed without an fsync is empty.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path


class Disk(Enum):
    """What a disk keeps without an fsync: nothing, or names."""

    STRICT = "strict"
    ORDERED = "ordered"


@dataclass(frozen=True, kw_only=True)
class Call:
    """A system call that changed the folder."""

    kind: str
    path: str
    other: str = ""
    """The new name of a rename or link."""
    offset: int = 0
    """Offset of a write in bytes, or the new length of a truncated file."""
    data: bytes = b""
    """Bytes of a write, or the target of a symbolic link."""


def read_recording(path: Path) -> list[Call]:
    """Read the calls that `disk_faults.c` recorded, in their order."""
    content, start, calls = path.read_bytes(), 0, []
    while start < len(content):
        end = content.index(b"\n", start)
        kind, length, name, other, offset = content[start:end].decode().split("\t")
        start = end + 1 + int(length)
        data = content[end + 1 : start]
        calls.append(Call(kind=kind, path=name, other=other, offset=int(offset), data=data))
    return calls


@dataclass
class Node:
    """A file, a folder or a symbolic link: its current content, and the part of it that is durable."""

    kind: str = "file"
    data: bytearray = field(default_factory=bytearray)
    durable_data: bytes = b""
    names: dict[str, Node] = field(default_factory=dict)
    durable_names: dict[str, Node] = field(default_factory=dict)


class ModelDisk:
    """A folder whose changes become durable by fsync."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._root = folder, Node(kind="folder")

    def apply(self, call: Call) -> None:
        """Apply a call to the current content, or make content durable."""
        parts = self._parts(call.path)
        if call.kind == "fsync":
            self._flush(self._node(parts))
        elif call.kind == "write":
            self._write(self._node(parts).data, call)
        elif call.kind == "truncate":
            self._cut(self._node(parts).data, call.offset)
        elif call.kind in ("rename", "link"):
            self._move(parts, self._parts(call.other), keep=call.kind == "link")
        elif call.kind == "unlink":
            self._parent(parts).names.pop(parts[-1], None)
        else:
            self._parent(parts).names[parts[-1]] = self._new(call)

    def files(self, disk: Disk) -> dict[str, tuple[str, bytes]]:
        """Return kind and bytes by path that the disk holds after a power failure at this point."""
        return dict(self._held(self._root, "", disk))

    def _held(self, folder: Node, prefix: str, disk: Disk) -> Iterator[tuple[str, tuple[str, bytes]]]:
        names = folder.durable_names if disk is Disk.STRICT else folder.names
        for name, node in sorted(names.items()):
            path = f"{prefix}{name}"
            yield path, (node.kind, node.durable_data)
            yield from self._held(node, f"{path}/", disk)

    def _parts(self, path: str) -> tuple[str, ...]:
        return Path(path).relative_to(self._folder).parts

    def _node(self, parts: tuple[str, ...]) -> Node:
        node = self._root
        for part in parts:
            node = node.names.get(part, Node())  # removed while open: its bytes are lost
        return node

    def _parent(self, parts: tuple[str, ...]) -> Node:
        return self._node(parts[:-1])

    @staticmethod
    def _new(call: Call) -> Node:
        kind = {"create": "file", "mkdir": "folder", "symlink": "link"}[call.kind]
        return Node(kind=kind, durable_data=call.data)

    def _move(self, source: tuple[str, ...], target: tuple[str, ...], *, keep: bool) -> None:
        node = self._node(source)
        if not keep:
            self._parent(source).names.pop(source[-1], None)
        self._parent(target).names[target[-1]] = node

    @staticmethod
    def _write(data: bytearray, call: Call) -> None:
        data.extend(bytes(max(0, call.offset - len(data))))
        data[call.offset : call.offset + len(call.data)] = call.data

    @staticmethod
    def _cut(data: bytearray, length: int) -> None:
        data.extend(bytes(max(0, length - len(data))))
        del data[length:]

    @staticmethod
    def _flush(node: Node) -> None:
        if node.kind == "folder":
            node.durable_names = dict(node.names)
        else:
            node.durable_data = bytes(node.data)


@dataclass(frozen=True, kw_only=True)
class PowerFailure:
    """What a disk holds if the power fails after a number of calls."""

    calls: int
    disk: Disk
    files: dict[str, tuple[str, bytes]]


def power_failures(calls: list[Call], folder: Path) -> Iterator[PowerFailure]:
    """Yield every different state that a power failure can leave, at the first call after which it occurs."""
    model = ModelDisk(folder)
    known: set[bytes] = set()
    for number, call in enumerate(calls, start=1):
        model.apply(call)
        for disk in Disk:
            files = model.files(disk)
            if (digest := _digest(files)) not in known:
                known.add(digest)
                yield PowerFailure(calls=number, disk=disk, files=files)


def _digest(files: dict[str, tuple[str, bytes]]) -> bytes:
    digest = hashlib.sha256()
    for path, (kind, data) in files.items():
        digest.update(f"{path}\0{kind}\0{len(data)}\0".encode() + data)
    return digest.digest()


def write_folder(files: dict[str, tuple[str, bytes]], folder: Path) -> None:
    """Create a folder with the files that a disk holds."""
    folder.mkdir()
    for name, (kind, data) in files.items():
        path = folder / name
        if kind == "folder":
            path.mkdir()
        elif kind == "link":
            path.symlink_to(data.decode())
        else:
            path.write_bytes(data)
