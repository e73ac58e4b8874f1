"""Inputs on which a reader once failed, or nearly: each is read, or refused in words."""

import time
from itertools import count
from pathlib import Path

import pytest
from mutation import mutated
from readers import MAKERS, make_reader

CORPUS = Path(__file__).with_name("corpus")


def kept(name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


@pytest.mark.parametrize("name", MAKERS)
def test_reader_refuses_every_kept_input_in_words(name: str, tmp_path: Path) -> None:
    reader = make_reader(name, tmp_path)
    for data in kept(name):
        reader(data)


@pytest.mark.parametrize("name", MAKERS)
def test_reader_refuses_100_changed_inputs_in_words(name: str, tmp_path: Path) -> None:
    reader = make_reader(name, tmp_path)
    for _, data in zip(range(100), mutated(kept(name), seed=29), strict=False):
        reader(data)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_reader_refuses_10_seconds_of_changed_inputs_in_words(name: str, tmp_path: Path) -> None:
    reader = make_reader(name, tmp_path)
    until = time.monotonic() + 10
    for number, data in zip(count(), mutated(kept(name), seed=time.time_ns()), strict=False):
        try:
            reader(data)
        except Exception as error:
            raise AssertionError(f"input {number}: {data!r}") from error
        if time.monotonic() > until:
            break


def test_kept_inputs_are_small() -> None:
    assert sum(path.stat().st_size for path in CORPUS.rglob("*") if path.is_file()) < 200_000
