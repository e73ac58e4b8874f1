"""Records of provenance, recordings and lists of sinks with other values than the program writes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atari_dqn.errors import DamagedError
from atari_dqn.files.documents import parse_json, read_json
from atari_dqn.record.packing import pack, unpack
from atari_dqn.run.directory import RunDirectory
from atari_dqn.telemetry.sinks.options import recorded_sinks


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 5_000, "deeper than 64"),
        ("[" * 70 + "]" * 70, "deeper than 64"),
        ('"\\ud800"', "surrogates not allowed"),
        ("9" * 5_000, "limit"),
        ("{", "Expecting"),
    ],
)
def test_text_that_is_no_usable_json_is_a_value_error(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_json(text.encode())


def test_document_above_its_size_is_damage(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(" " * 101)
    with pytest.raises(DamagedError, match=r"a\.json: cannot be read: is larger than 100 bytes"):
        read_json(tmp_path / "a.json", most_bytes=100)


@pytest.mark.fault("H05")
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("torch_threads", "4"), ("torch_threads", 0), ("name", 3), ("versions", []), ("kernels", "x"),
        ("track", {"label": "A", "deviations": 5}), ("git", "word"), ("spec", {"toml_sha256": 1}),
        ("hardware", {"cpu_model": "x"}), ("protocols", [1]),
    ],
)  # fmt: skip
def test_value_of_another_type_in_the_provenance_is_named(tmp_path: Path, key: str, value: Any) -> None:
    record = {"spec": {"digest": "", "toml_sha256": ""}, key: value}
    (tmp_path / "provenance.json").write_text(json.dumps(record))
    with pytest.raises(DamagedError, match=rf"provenance\.json: {key}"):
        RunDirectory(tmp_path).read_provenance()


def test_packed_array_is_inflated_no_further_than_its_shape() -> None:
    packed = pack(np.zeros(50_000_000, np.uint8)) | {"shape": [3]}
    with pytest.raises(ValueError, match="cannot reshape array of size 4 into shape"):
        unpack(packed)


@pytest.mark.parametrize(
    ("dtype", "shape"), [("|O", [1]), ("<f4", [10**13]), ("<f4", [-1]), ("<f4", [2**62, 4])]
)
def test_packed_array_of_a_hostile_shape_is_refused(dtype: str, shape: list[int]) -> None:
    packed = pack(np.zeros(1, np.float32)) | {"dtype": dtype, "shape": shape}
    with pytest.raises(ValueError, match=r"expected up to 1,073,741,824 bytes"):
        unpack(packed)


@pytest.mark.parametrize("text", ["5", '{"sinks": 5}', '{"sinks": [[]]}', '{"sinks": {}}', "[" * 3_000])
def test_sinks_of_another_kind_are_not_remembered(tmp_path: Path, text: str) -> None:
    (tmp_path / "sinks.json").write_text(text)
    assert recorded_sinks(tmp_path) == ()
