"""Files that are small and say that they are large: refused before any memory is taken, and nothing hangs."""

import json
import os
import shutil
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
import zstandard
from tampering import reseal, tamper_state
from tiny import CPU, run

from atari_dqn.errors import DamagedError
from atari_dqn.run.checkpoint.archive import read_archive
from atari_dqn.run.checkpoint.array_files import read_array
from atari_dqn.run.checkpoint.layout import ArrayLayout
from atari_dqn.run.directory import RunDirectory
from atari_dqn.train import launch
from atari_dqn.train.training import Training


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "run"
    run(path, "training.total_frames=400")
    return path


@pytest.fixture
def copied(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "run", symlinks=True)


@pytest.fixture
def checkpoint(copied: Path) -> Path:
    return copied / "checkpoints/step_000000100"


def refusal_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return why a run is not resumed; its state must not be taken over, in part or whole."""

    def fail(*_: object) -> None:
        raise AssertionError("taken over")

    monkeypatch.setattr(Training, "load_state_dict", fail)
    with pytest.raises(DamagedError) as refusal:
        launch.resume(RunDirectory.open(path), device=CPU, views=[], total_frames=800)
    return str(refusal.value).splitlines()[0]


def header(shape: tuple[int, ...], dtype: str) -> bytes:
    file = BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue()


@pytest.mark.fault("H05")
def test_array_of_ten_trillion_elements_is_refused(
    copied: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkpoint / "arrays/replay.sampler.cells.npy").write_bytes(header((10**13,), "<i8"))
    reseal(checkpoint)
    found = refusal_of(copied, monkeypatch)
    assert (
        "replay.sampler.cells.npy: found int64 of shape (10000000000000,), expected int64 of shape" in found
    )


def test_array_without_a_layout_must_fill_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(header((10**13,), "<i8"))
    with pytest.raises(DamagedError, match=r"a\.npy: cannot be read as an array: it does not hold int64"):
        read_array(tmp_path / "a.npy", None)


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00\x10\x00{'descr': [[[[[[", b"PK"])
def test_file_without_a_header_is_no_array(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(data)
    with pytest.raises(DamagedError, match=r"a\.npy: cannot be read as an array"):
        read_array(tmp_path / "a.npy", ArrayLayout(np.dtype(np.float64), (2,)))


@pytest.mark.fault("H05")
@pytest.mark.slow
def test_segment_of_86_kb_that_says_it_is_3_gb_is_refused(
    copied: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (segment,) = (checkpoint / "replay").iterdir()
    compressor = zstandard.ZstdCompressor().compressobj(size=2_990_000_000)
    block, data = bytes(10_000_000), b""
    for _ in range(299):
        data += compressor.compress(block)
    segment.write_bytes(data + compressor.flush())
    reseal(checkpoint)
    with pytest.raises(
        DamagedError, match=r"\.zst: cannot be read: it declares 2,990,000,000 bytes, \d+ rows"
    ):
        launch.resume(RunDirectory.open(copied), device=CPU, views=[], total_frames=800)


@pytest.mark.fault("H05")
def test_rows_wider_than_the_screen_are_refused(
    copied: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ("replay", "ring", "rows", "$rows", "columns", "frame")
    tamper_state(checkpoint, place, ["|u1", [1, 36_000, 36_000]])
    assert "replay.ring.rows.columns: are not those of the replay of this run" in refusal_of(
        copied, monkeypatch
    )


@pytest.mark.fault("H05")
def test_segment_with_more_rows_than_the_replay_is_refused(
    copied: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = ("replay", "ring", "rows", "$rows", "segments", 0)
    state = json.loads((checkpoint / "state.json").read_text())
    segment = state["replay"]["ring"]["rows"]["$rows"]["segments"][0]
    stop = segment["first"] + 7_000
    name = f"replay/{segment['first']:012d}-{stop:012d}.zst"
    tamper_state(checkpoint, place, {**segment, "stop": stop, "file": name})
    assert "holds more rows than this run's replay, 154" in refusal_of(copied, monkeypatch)


def rewritten(archive: Path, compression: int, **sizes: int) -> None:
    """Write an archive's members anew, each compressed, some with zeros of another size."""
    with zipfile.ZipFile(archive) as old:
        members = {name: old.read(name) for name in old.namelist()}
    with zipfile.ZipFile(archive, "w", compression) as new:
        for name, data in members.items():
            new.writestr(name, bytes(sizes.get(Path(name).name, len(data))) if "/data/" in name else data)


@pytest.mark.fault("H05")
def test_compressed_weights_are_refused(
    copied: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewritten(checkpoint / "agent.pt", zipfile.ZIP_DEFLATED)
    reseal(checkpoint)
    assert "agent.pt: cannot be read as weights: archive/" in refusal_of(copied, monkeypatch)
    assert "is compressed" in refusal_of(copied, monkeypatch)


@pytest.mark.fault("H05")
def test_weights_larger_than_the_network_are_refused(
    copied: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (checkpoint / "agent.pt").unlink()
    weights = {"online": {"torso.hidden.weight": torch.zeros(1_000_000)}}
    torch.save(weights, checkpoint / "agent.pt")
    reseal(checkpoint)
    assert "has 4,000,000 bytes, which no weight of the network has" in refusal_of(copied, monkeypatch)


def test_average_of_another_shape_than_its_weight_never_reaches_a_kernel(
    copied: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = torch.load(checkpoint / "agent.pt", weights_only=True)
    agent["optimizer"]["state"][0]["mean"] = torch.zeros(2)
    torch.save(agent, checkpoint / "agent.pt")
    reseal(checkpoint)
    assert "optimizer.state.0.mean: found torch.float32 of shape (2,)" in refusal_of(copied, monkeypatch)


def test_tensor_that_repeats_one_number_ten_trillion_times_is_refused(tmp_path: Path) -> None:
    torch.save({"online": {"weight": torch.zeros(1).expand(10**13)}}, tmp_path / "agent.pt")
    with pytest.raises(DamagedError, match=r"online\.weight is sparse, or larger than its storage"):
        read_archive(tmp_path / "agent.pt", None)


def test_pickle_that_would_make_ten_gigabytes_is_refused(tmp_path: Path) -> None:
    torch.save({"online": bytearray(4)}, tmp_path / "agent.pt")
    with pytest.raises(DamagedError, match=r"its pickle names __builtin__\.bytearray"):
        read_archive(tmp_path / "agent.pt", None)


FILES = ["spec.toml", "provenance.json", "train_log.csv", "events.jsonl", ".lock"]


@pytest.mark.parametrize("kind", ["pipe", "directory"])
@pytest.mark.parametrize("name", [*FILES, *(f"checkpoints/step_000000100/{each}" for each in (
    "manifest.json", "state.json", "agent.pt", "arrays/replay.sampler.cells.npy"))])  # fmt: skip
def test_pipe_or_directory_in_a_files_place_is_named_and_waited_for_by_nothing(
    copied: Path, name: str, kind: str
) -> None:
    path = copied / name
    path.unlink(missing_ok=True)
    os.mkfifo(path) if kind == "pipe" or name == ".lock" else path.mkdir()
    with pytest.raises(DamagedError, match=path.name):
        launch.resume(RunDirectory.open(copied), device=CPU, views=[], total_frames=800)


def test_pipe_in_the_catalogs_place_is_not_waited_for(copied: Path) -> None:
    (copied / "checkpoints/catalog.json").unlink()
    os.mkfifo(copied / "checkpoints/catalog.json")
    launch.resume(RunDirectory.open(copied), device=CPU, views=[], total_frames=800)
    assert (copied / "checkpoints/catalog.json").is_file()
