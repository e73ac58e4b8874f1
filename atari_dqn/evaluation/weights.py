"""Read and write the weights of an archive, in the safetensors format, which holds numbers alone."""

from __future__ import annotations

from collections.abc import Mapping

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from atari_dqn.errors import DamagedError
from atari_dqn.run.archive.archive import WEIGHTS, Archive


def weights_data(weights: Mapping[str, Tensor]) -> bytes:
    """Return weights by name in the safetensors format."""
    return save({name: weight.detach().cpu().contiguous().clone() for name, weight in weights.items()})


def read_weights(archive: Archive, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Read the weights of an archive into RAM.

    Raise `DamagedError` unless they have the names, shapes and types of `expected`, the weights of a new
    network of the archive's spec.
    """
    where = f"{archive.path}: {WEIGHTS}"
    try:
        weights: dict[str, Tensor] = load(archive.parts[WEIGHTS])
    except (SafetensorError, ValueError, KeyError) as error:
        raise DamagedError(f"{where}: cannot be read: {error}") from error
    problems = sorted(weights.keys() ^ expected.keys())
    if problems:
        raise DamagedError(f"{where}: {problems[0]} is not in both, the file and a network of its spec")
    for name, weight in weights.items():
        own = expected[name]
        if (weight.shape, weight.dtype) != (own.shape, own.dtype):
            found = f"{weight.dtype} of shape {tuple(weight.shape)}"
            raise DamagedError(f"{where}: {name}: found {found}, expected {own.dtype} of {tuple(own.shape)}")
    return weights
