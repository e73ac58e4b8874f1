import importlib
from dataclasses import replace
from pathlib import Path

import pytest

from atari_dqn.doctor import diagnosis_text, examine, recommend
from atari_dqn.hardware import Gpu, Hardware

GB = 10**9


def settings(hardware: Hardware) -> dict[str, str]:
    return {setting.key: setting.value for setting in recommend(hardware)}


def found_on(monkeypatch: pytest.MonkeyPatch, hardware: Hardware) -> str:
    monkeypatch.setattr("atari_dqn.doctor.find_hardware", lambda path: hardware)
    return diagnosis_text(examine(Path()))


def test_machine_that_runs_the_tests_is_healthy(tmp_path: Path) -> None:
    assert examine(tmp_path).healthy


def test_every_rom_is_found(tmp_path: Path) -> None:
    assert "108 of 108 found" in {check.text for check in examine(tmp_path).checks if check.name == "ROMs"}


def test_two_cores_without_gpu_learn_and_emulate_in_one_process(laptop: Hardware) -> None:
    assert settings(laptop) == {"--device": "cpu", "system.workers": "0", "learner.precision": '"fp32"'}


def test_processor_with_bf16_may_use_it(laptop: Hardware) -> None:
    assert settings(replace(laptop, cpu_flags=("avx512_bf16",)))["learner.precision"] == '"bf16"'


def test_gpu_gets_every_core_but_one_as_worker(laptop: Hardware, gpu: Gpu) -> None:
    found = settings(replace(laptop, cores_usable=16, gpus=(gpu,)))
    assert found == {"--device": "cuda", "system.workers": "15", "learner.precision": '"bf16"'}


def test_old_gpu_keeps_to_fp32(laptop: Hardware, gpu: Gpu) -> None:
    old = replace(laptop, gpus=(replace(gpu, capability=(7, 5)),))
    assert settings(old)["learner.precision"] == '"fp32"'


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        ({"memory_available_bytes": 4 * GB}, "lower replay.capacity_steps"),
        ({"disk_free_bytes": GB // 2}, "lower replay.capacity_steps"),
        ({"shared_memory_free_bytes": 64 * 10**6}, "--shm-size"),
    ],
)
def test_shortage_is_listed_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, laptop: Hardware, change: dict[str, int], remedy: str
) -> None:
    assert remedy in " ".join(found_on(monkeypatch, replace(laptop, **change)).split())  # type: ignore[arg-type]


def test_disk_that_the_plan_of_the_papers_run_fits_on_is_enough(
    monkeypatch: pytest.MonkeyPatch, laptop: Hardware
) -> None:
    assert "ok    disk           1.00 GB free" in found_on(monkeypatch, replace(laptop, disk_free_bytes=GB))


@pytest.mark.parametrize("module", ["torch", "cv2", "ale_py.roms"])
def test_package_that_does_not_load_is_a_finding(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    def load(name: str) -> object:
        if name == module:
            raise ImportError("libGL.so.1: cannot open shared object file")
        return importlib.import_module(name)

    monkeypatch.setattr("atari_dqn.doctor.importlib.import_module", load)
    diagnosis = examine(Path())
    assert not diagnosis.healthy
    assert "libGL.so.1" in diagnosis_text(diagnosis)


def test_text_stays_within_80_columns(monkeypatch: pytest.MonkeyPatch, laptop: Hardware, gpu: Gpu) -> None:
    poor = replace(
        laptop, memory_available_bytes=GB, disk_free_bytes=GB // 2, shared_memory_free_bytes=GB, gpus=(gpu,)
    )
    assert max(len(line) for line in found_on(monkeypatch, poor).splitlines()) <= 80
