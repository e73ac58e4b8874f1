"""The available kernels: PyTorch computes without them, and a run records them."""

import os
import platform
import shutil
import subprocess
import sys
import time
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
import torch

from atari_dqn.errors import UserError
from atari_dqn.fast.cpu import library as found
from atari_dqn.fast.cpu.products import fits_product
from atari_dqn.machine.hardware import cpu_flags


def test_missing_library_is_none() -> None:
    assert found._load.__wrapped__("of_another_name", "portable") is None


@pytest.mark.skipif(found.library("portable") is None, reason="no kernels of our own on this machine")
def test_library_of_other_sources_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file in found.FOLDER.glob("*portable*"):
        shutil.copy(file, tmp_path)
    monkeypatch.setattr(found, "FOLDER", tmp_path)
    name = min(path.name.split(".")[0].removeprefix("_") for path in tmp_path.glob("_portable*"))
    assert found._load.__wrapped__(name, "portable") is not None
    (tmp_path / "optimizer.cpp").write_text("// changed since")
    with pytest.raises(UserError, match=r"install again: pip install -e \.; .*: set ATARI_DQN_ISA=none"):
        found._load.__wrapped__(name, "portable")


def test_none_is_chosen_without_loading_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: str, functions: str) -> None:
        raise UserError("was compiled from other sources")

    monkeypatch.setattr(found, "_load", refuse)
    monkeypatch.setenv(found.OVERRIDE, "none")
    assert found.instruction_set.__wrapped__() == "none"


def test_library_that_cannot_be_loaded_has_the_error_of_the_loader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found, "FOLDER", tmp_path)
    (tmp_path / f"_products_avx2{EXTENSION_SUFFIXES[0]}").write_bytes(b"not a library")
    assert found.load_error("portable") is None
    assert "_products_avx2" in (found.load_error("products") or "")


def test_without_a_library_there_are_no_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "_load", lambda file, functions: None)
    for function in ("instruction_set", "library", "units"):
        monkeypatch.setattr(found, function, getattr(found, function).__wrapped__)
    assert found.kernels_here() == ()


@pytest.mark.parametrize(
    ("here", "dtype", "unit"),
    [
        (("fp32 vectors", "bf16 vectors", "bf16 tiles"), torch.bfloat16, 2),
        (("fp32 vectors", "bf16 vectors"), torch.bfloat16, 1),
        (("fp32 vectors", "bf16 tiles"), torch.float32, 0),
        (("fp32 vectors",), torch.bfloat16, None),
        (("fp32 vectors",), torch.float64, None),
    ],
)
def test_quickest_unit_of_a_format_is_chosen(
    here: tuple[str, ...], dtype: torch.dtype, unit: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found, "units", lambda: here)
    assert found._unit_for.__wrapped__(dtype) == unit


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder with what `setup.py` compiles, a compiler that only notes its outputs, and none of its own."""
    repository = found.FOLDER.parents[2]
    shutil.copy(repository / "setup.py", tmp_path)
    (tmp_path / "atari_dqn/fast/cpu").mkdir(parents=True)
    for file in found.FOLDER.glob("*.?pp"):
        shutil.copy(file, tmp_path / "atari_dqn/fast/cpu")
    compiler = tmp_path / "compiler"
    compiler.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done; echo "$2" >> outputs; touch "$2"\n')
    compiler.chmod(0o755)
    return tmp_path


def build(folder: Path, compiler: str) -> list[str]:
    """Compile in place; return what a compiler put out."""
    (folder / "outputs").write_text("")
    with_compiler = os.environ | {
        "CC": compiler,
        "CXX": compiler,
        "LDSHARED": compiler,
        "LDCXXSHARED": compiler,
    }
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=folder, env=with_compiler, check=True, capture_output=True,
    )  # fmt: skip
    return (folder / "outputs").read_text().split()


@pytest.mark.skipif(sys.platform != "linux", reason="nothing is compiled on this system")
@pytest.mark.slow
def test_change_of_one_source_has_every_library_compiled_anew(sources: Path) -> None:
    first = build(sources, str(sources / "compiler"))
    assert first
    changed = sources / "atari_dqn/fast/cpu/frames.cpp"
    os.utime(changed, (changed.stat().st_atime, time.time() + 10))
    assert sorted(build(sources, str(sources / "compiler"))) == sorted(first)


@pytest.mark.skipif(sys.platform != "linux", reason="nothing is compiled on this system")
@pytest.mark.slow
def test_compiler_that_fails_leaves_no_library_of_before(sources: Path) -> None:
    build(sources, str(sources / "compiler"))
    kernels = sources / "atari_dqn/fast/cpu"
    assert list(kernels.glob("*.so"))
    (kernels / "frames.cpp").write_text("// changed since")
    build(sources, "/bin/false")
    assert list(kernels.glob("*.so")) == []


@pytest.mark.parametrize(
    ("precision", "used"), [("fp32", ["fp32 vectors", "portable"]), ("bf16", ["bf16 tiles", "portable"])]
)
def test_run_uses_the_quickest_unit_of_its_precision(precision: str, used: list[str]) -> None:
    assert found.kernels_for(precision, (*found.UNITS, "portable")) == used


@pytest.mark.skipif(found.unit_for(torch.bfloat16) is None, reason="no kernels of our own on this machine")
def test_tensors_of_two_formats_are_refused() -> None:
    x, weight = torch.zeros(2, 64), torch.zeros(32, 64, dtype=torch.bfloat16)
    assert fits_product((32, 64), torch.bfloat16)
    with pytest.raises(ValueError, match="too many values"):
        torch.ops.atari_dqn.multiply(x, weight, torch.zeros(32))


def test_best_instruction_set_of_this_processor_is_chosen() -> None:
    flags = set(cpu_flags() or ())
    has_compiler = any(found.FOLDER.glob("_products_*.so"))
    best = "avx512" if "avx512f" in flags else "avx2" if "avx2" in flags else None
    if platform.machine() == "aarch64":
        best = "neon"
    assert found.instruction_set() == (os.environ.get(found.OVERRIDE) or (best if has_compiler else None))


@pytest.mark.parametrize("asked", ["neon", "avx1024"])
def test_instruction_set_that_is_not_here_is_refused(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "_bits", lambda name: name == "avx2")
    monkeypatch.setenv(found.OVERRIDE, asked)
    with pytest.raises(UserError, match=f"ATARI_DQN_ISA={asked} is not available .* available: avx2, none"):
        found.instruction_set.__wrapped__()


def test_none_leaves_everything_to_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "instruction_set", lambda: "none")
    for function in ("library", "units"):
        monkeypatch.setattr(found, function, getattr(found, function).__wrapped__)
    assert found.kernels_here() == ()


@pytest.mark.parametrize(
    ("chosen", "name"),
    [("avx512", "fp32 vectors"), ("avx2", "fp32 vectors of AVX2"), ("neon", "fp32 vectors of NEON")],
)
def test_kernels_are_recorded_with_their_instruction_set(
    chosen: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(found, "instruction_set", lambda: chosen)
    monkeypatch.setattr(found, "units", lambda: ("fp32 vectors",))
    assert name in found.kernels_here()
    assert found.kernels_for("fp32", [name, "portable"]) == [name, "portable"]
    assert found.kernels_for("bf16", [name, "portable"]) == ["portable"]
