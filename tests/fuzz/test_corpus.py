"""Inputs on which a reader once failed, or nearly: each is read, or refused in words."""

import math
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pytest
from mutation import mutated
from readers import MAKERS, Reader, make_reader

CORPUS = Path(__file__).with_name("corpus")


def kept(name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


def unforeseen(reader: Reader, inputs: Iterable[bytes], until: float = math.inf) -> str:
    """Return the first input, and its error, that a reader neither reads nor refuses in words."""
    for number, data in enumerate(inputs):
        try:
            reader(data)
        except Exception as error:
            return f"input {number}, {data!r}: {error!r}"
        if time.monotonic() > until:
            break
    return ""


@pytest.mark.parametrize("name", MAKERS)
def test_reader_refuses_every_kept_input_in_words(name: str, tmp_path: Path) -> None:
    assert unforeseen(make_reader(name, tmp_path), kept(name)) == ""


@pytest.mark.parametrize("name", MAKERS)
def test_reader_refuses_100_changed_inputs_in_words(name: str, tmp_path: Path) -> None:
    assert unforeseen(make_reader(name, tmp_path), islice(mutated(kept(name), seed=29), 100)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_reader_refuses_10_seconds_of_changed_inputs_in_words(name: str, tmp_path: Path) -> None:
    inputs = mutated(kept(name), seed=time.time_ns())
    assert unforeseen(make_reader(name, tmp_path), inputs, until=time.monotonic() + 10) == ""


def test_kept_inputs_are_small() -> None:
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < 200_000
