"""agent.pt, an archive that `torch.save` wrote: its directory and its pickle are looked at before it is read.

The archive is a ZIP file of storages, each as large as its tensor, and a pickle that says how they belong
together. Only what `torch.save` writes of plain tensors is let through: nothing is compressed, no storage is
of another size than the network needs, and no function is called but those that make tensors.
"""

from __future__ import annotations

import pickletools
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from atari_dqn.checkpoint.tree import leaves
from atari_dqn.documents import reading_of_run
from atari_dqn.errors import DamagedError
from atari_dqn.files import open_regular
from atari_dqn.types import StateDict

_END_BYTES = 22
_END_SIGNATURE = b"PK\x05\x06"
_MOST_PICKLE_BYTES = 2**20
_SMALL_BYTES = 2**14
"""A storage up to this size is a count or a random stream's state."""
_MOST_COPIES = 5
"""Of a network's weights: both networks, and an optimizer's averages, of which none keeps more than three."""
_FUNCTIONS = {"torch._utils _rebuild_tensor_v2", "collections OrderedDict"}
_GLOBAL_OPCODES = {"GLOBAL", "INST", "STACK_GLOBAL"}


def read_archive(path: Path, learner: StateDict | None) -> StateDict:
    """Return what an archive holds, in RAM wherever it was. Runs no code of the file.

    `learner` is the state of a new learner, or of its part that is needed, which the file's must be like;
    None lets any sizes through, up to that of the file. `DamagedError` if the file is not like that.
    """
    weights = None if learner is None else learner["online"]
    with reading_of_run(path), open_regular(path) as file:
        try:
            _check_archive(file, weights)
            file.seek(0)
            state: StateDict = torch.load(file, map_location="cpu", weights_only=True)
            _check_tensors(state)
        except Exception as error:  # a file that was tampered with can make the reader raise anything
            cause = next(iter(str(error).splitlines()), type(error).__name__)
            raise DamagedError(f"{path}: cannot be read as weights: {cause}") from error
    return state


def _check_archive(file: BinaryIO, weights: Mapping[str, Tensor] | None) -> None:
    """Raise a `ValueError` for an archive that `torch.save` did not write, or not of such weights."""
    # Another reader might take another directory than the one that ends the file, if there could be two.
    file.seek(-_END_BYTES, 2)
    if file.read(4) != _END_SIGNATURE:
        raise ValueError("its directory is not at its end")
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        _check_members(members, weights)
        pickles = [member for member in members if member.filename.endswith("/data.pkl")]
        if len(pickles) != 1 or pickles[0].file_size > _MOST_PICKLE_BYTES:
            raise ValueError(f"expected one pickle of up to {_MOST_PICKLE_BYTES:,} bytes")
        _check_pickle(archive.read(pickles[0]))


def _check_members(members: Iterable[zipfile.ZipInfo], weights: Mapping[str, Tensor] | None) -> None:
    large = []
    for member in members:
        if member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size:
            raise ValueError(f"{member.filename} is compressed")
        if member.file_size > _SMALL_BYTES and not member.filename.endswith("/data.pkl"):
            large.append(member)
    if weights is None:
        return
    sizes = {weight.nbytes for weight in weights.values()}
    for member in large:
        if member.file_size not in sizes:
            size = f"{member.filename} has {member.file_size:,} bytes, as none of its weights"
            raise ValueError(f"is of another game or network than its run's: {size}")
    most = _MOST_COPIES * sum(weight.nbytes for weight in weights.values())
    if sum(member.file_size for member in large) > most:
        raise ValueError(f"it holds more than {most:,} bytes, which networks and optimizer need at most")


def _check_pickle(data: bytes) -> None:
    for name in _globals_of(data):
        is_storage = name.startswith("torch ") and name.endswith("Storage") and "." not in name
        if name not in _FUNCTIONS and not is_storage:
            raise ValueError(f"its pickle names {name.replace(' ', '.')}, which no tensor needs")


def _globals_of(data: bytes) -> Iterator[str]:
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name in _GLOBAL_OPCODES:
            yield str(argument)


def _check_tensors(state: Any) -> None:
    """Raise a `ValueError` for a tensor that is larger than what is stored of it, or sparse."""
    if not isinstance(state, dict):
        raise TypeError(f"found {type(state).__name__}, expected a table")
    for path, leaf in leaves(state):
        if isinstance(leaf, Tensor) and (
            leaf.layout != torch.strided or leaf.nbytes > leaf.untyped_storage().nbytes()
        ):
            raise ValueError(f"{path} is larger than what is stored of it")
