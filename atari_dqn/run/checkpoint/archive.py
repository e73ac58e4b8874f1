"""Read `agent.pt`, an archive written by `torch.save`, after checking its ZIP directory and its pickle.

The archive is a ZIP file that holds one storage per tensor and a pickle that builds the tensors from them.
Only archives as `torch.save` writes them for plain tensors are accepted: no member is compressed, every large
storage has the size of one of the network's weights, and the pickle calls no function but those that build
tensors.
"""

from __future__ import annotations

import pickletools
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from atari_dqn.errors import DamagedError, InfrastructureError, is_of_memory
from atari_dqn.files.atomic import open_regular
from atari_dqn.files.documents import reading_of_run
from atari_dqn.files.failures import UNAVAILABLE
from atari_dqn.run.checkpoint.state_tree import leaves
from atari_dqn.types import StateDict

_END_BYTES = 22
_END_SIGNATURE = b"PK\x05\x06"
_MOST_PICKLE_BYTES = 2**20
_SMALL_BYTES = 2**14
"""Storages up to this size, such as counts and states of random streams, may have any size."""
_MOST_COPIES = 5
"""Largest number of arrays per weight: two networks, and at most three averages of an optimizer."""
_FUNCTIONS = {"torch._utils _rebuild_tensor_v2", "collections OrderedDict"}
_GLOBAL_OPCODES = {"GLOBAL", "INST", "STACK_GLOBAL"}


def read_archive(path: Path, learner: StateDict | None) -> StateDict:
    """Load an archive into RAM, whatever device its tensors were on. No code of the file is run.

    `learner` is the state of a new learner, or the part of it that is needed; the sizes in the file must
    match it. With None, any sizes are accepted. Raise `DamagedError` if the archive does not pass the checks,
    `InfrastructureError` if there is too little memory for it.
    """
    weights = None if learner is None else learner["online"]
    with reading_of_run(path), open_regular(path) as file:
        try:
            _check_archive(file, weights)
            file.seek(0)
            state: StateDict = torch.load(file, map_location="cpu", weights_only=True)
            _check_tensors(state)
        except Exception as error:  # a manipulated file can make the reader raise any exception
            if is_of_memory(error):
                raise InfrastructureError(f"{path}: too little memory to read it: {error!r}") from error
            if isinstance(error, OSError) and error.errno in UNAVAILABLE:
                raise
            cause = next(iter(str(error).splitlines()), type(error).__name__)
            raise DamagedError(f"{path}: cannot be read as weights: {cause}") from error
    return state


def _check_archive(file: BinaryIO, weights: Mapping[str, Tensor] | None) -> None:
    """Raise a `ValueError` if `torch.save` did not write the archive, or not with weights of these sizes."""
    # torch and zipfile could pick different directories of a file that has two: accept only one at the end.
    file.seek(-_END_BYTES, 2)
    if file.read(4) != _END_SIGNATURE:
        raise ValueError("the ZIP directory is not at the end of the file")
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
            size = f"{member.filename} has {member.file_size:,} bytes, which no weight of the network has"
            raise ValueError(f"is of another game or network than its run: {size}")
    most = _MOST_COPIES * sum(weight.nbytes for weight in weights.values())
    if sum(member.file_size for member in large) > most:
        raise ValueError(f"it holds more than {most:,} bytes, the most that networks and optimizer need")


def _check_pickle(data: bytes) -> None:
    for name in _globals_of(data):
        is_storage = name.startswith("torch ") and name.endswith("Storage") and "." not in name
        if name not in _FUNCTIONS and not is_storage:
            raise ValueError(
                f"its pickle names {name.replace(' ', '.')}, which is not needed to build tensors"
            )


def _globals_of(data: bytes) -> Iterator[str]:
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name in _GLOBAL_OPCODES:
            yield str(argument)


def _check_tensors(state: Any) -> None:
    """Raise a `ValueError` for a tensor that is sparse or larger than its storage."""
    if not isinstance(state, dict):
        raise TypeError(f"found {type(state).__name__}, expected a table")
    for path, leaf in leaves(state):
        if isinstance(leaf, Tensor) and (
            leaf.layout != torch.strided or leaf.nbytes > leaf.untyped_storage().nbytes()
        ):
            raise ValueError(f"{path} is sparse, or larger than its storage")
