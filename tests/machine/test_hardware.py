import errno
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from atari_dqn.machine.hardware import (
    Gpu,
    Hardware,
    allocated_bytes,
    cpu_flags,
    cpu_model,
    disk_free_bytes,
    find_gpus,
    find_hardware,
    physical_cores,
    shared_memory_free_bytes,
)

CPUINFO = (
    "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9354\n"
    "flags\t\t: fpu avx2 avx512_bf16 sse\n"
)


def test_processor_and_its_instruction_sets_are_read(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text(CPUINFO)
    assert cpu_model(tmp_path / "cpuinfo") == "AMD EPYC 9354"
    assert cpu_flags(tmp_path / "cpuinfo") == ("avx2", "avx512_bf16")


def test_instruction_sets_of_an_arm_processor_are_read(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nFeatures\t: fp asimd bf16 i8mm\n")
    assert cpu_flags(tmp_path / "cpuinfo") == ("bf16",)


def test_old_processor_has_none_of_the_instruction_sets_that_matter(tmp_path: Path) -> None:
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nflags\t\t: fpu sse4_2 avx\n")
    assert cpu_flags(tmp_path / "cpuinfo") == ()


@pytest.mark.parametrize(
    ("flags", "fast"),
    [(("amx_bf16",), True), (("bf16",), True), (("avx2", "avx512f"), False), ((), False), (None, None)],
)
def test_fast_bf16_is_true_false_or_unknown(
    laptop: Hardware, flags: tuple[str, ...] | None, fast: bool | None
) -> None:
    assert replace(laptop, cpu_flags=flags).fast_bf16 is fast


def test_system_without_cpuinfo_still_has_a_cpu_model(tmp_path: Path) -> None:
    assert cpu_model(tmp_path / "absent")
    assert cpu_flags(tmp_path / "absent") is None


def test_system_without_a_shared_memory_folder_reports_none(tmp_path: Path) -> None:
    assert shared_memory_free_bytes(tmp_path / "absent") is None


def test_disk_of_a_missing_directory_is_that_of_its_nearest_parent(tmp_path: Path) -> None:
    assert disk_free_bytes(tmp_path / "outputs" / "run") > 0


def test_this_machine_is_described(tmp_path: Path) -> None:
    hardware = find_hardware(tmp_path)
    assert 1 <= hardware.cores_usable <= hardware.cores_logical
    assert 0 < hardware.memory_available_bytes <= hardware.memory_bytes


def test_a_full_gpu_is_found_without_free_memory_and_the_others_with_theirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class FakeCuda:
        """Two GPUs, of which the first has no memory left for a context."""

        def device_count(self) -> int:
            return 2

        def get_device_properties(self, index: int) -> SimpleNamespace:
            return SimpleNamespace(name=f"GPU {index}", total_memory=24_000, major=8, minor=9)

        def mem_get_info(self, index: int) -> tuple[int, int]:
            if index == 0:
                raise RuntimeError("CUDA error: out of memory")
            return 20_000, 24_000

    monkeypatch.setattr("atari_dqn.machine.hardware.may_have_gpus", lambda: True)
    monkeypatch.setattr("torch.cuda", FakeCuda())
    assert find_gpus() == (
        Gpu(name="GPU 0", memory_bytes=24_000, memory_free_bytes=0, capability=(8, 9)),
        Gpu(name="GPU 1", memory_bytes=24_000, memory_free_bytes=20_000, capability=(8, 9)),
    )


def test_file_with_two_hard_links_takes_its_disk_space_once(tmp_path: Path) -> None:
    (tmp_path / "whole").write_bytes(bytes(range(256)) * 4096)
    alone = allocated_bytes(tmp_path)
    (tmp_path / "link").hardlink_to(tmp_path / "whole")
    assert alone >= 1_048_576
    assert allocated_bytes(tmp_path) == alone


def test_file_that_another_host_has_removed_takes_no_disk_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stale(path: str) -> None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)

    (tmp_path / "removed").write_bytes(b"x")
    monkeypatch.setattr(os, "lstat", stale)
    assert allocated_bytes(tmp_path) == 0


def test_disk_space_of_a_file_is_hardly_more_than_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "whole").write_bytes(bytes(range(256)) * 4096)
    assert allocated_bytes(tmp_path) < 1.1 * 1_048_576


def test_link_does_not_take_the_disk_space_of_its_file(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(bytes(range(256)) * 4096)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "link").symlink_to(tmp_path / "elsewhere")
    assert allocated_bytes(tmp_path / "run") < 65_536


def topology(folder: Path, siblings: dict[int, str]) -> Path:
    """Write the hyperthreads that share a core with each core, as Linux has them."""
    for number, shared in siblings.items():
        (folder / f"cpu{number}/topology").mkdir(parents=True)
        (folder / f"cpu{number}/topology/thread_siblings_list").write_text(shared)
    return folder


@pytest.mark.parametrize(("allowed", "cores"), [({0, 1, 4, 5}, 2), ({0, 1}, 2), ({0, 4}, 1)])
def test_hyperthreads_of_one_core_are_one_physical_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: set[int], cores: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: allowed, raising=False)
    cpus = topology(tmp_path, {number: f"{number % 4},{number % 4 + 4}" for number in range(8)})
    assert physical_cores(cpus) == cores


def test_physical_cores_of_an_unknown_topology_are_those_of_the_machine(tmp_path: Path) -> None:
    assert physical_cores(tmp_path) == (psutil.cpu_count(logical=False) or psutil.cpu_count())
