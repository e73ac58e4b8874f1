import importlib
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from atari_dqn.bench import probes
from atari_dqn.bench.advice import Setting, recommend, recommend_for
from atari_dqn.bench.doctor import Check, Diagnosis, diagnosis_text, examine
from atari_dqn.bench.update_times import UpdateTime, measure_update_times
from atari_dqn.cli.app import app
from atari_dqn.envs.exactness import exactness
from atari_dqn.errors import UserError
from atari_dqn.fast.cpu import library
from atari_dqn.machine.contention import Contention
from atari_dqn.machine.hardware import Gpu, Hardware

GB = 10**9


@pytest.fixture(autouse=True)
def threads_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset the number of threads that the tests' own processes have."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.fixture(autouse=True)
def load_is_measured_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atari_dqn.bench.doctor._LOAD_SECONDS", 0.21)


def settings(hardware: Hardware) -> dict[str, str]:
    return {setting.key: setting.value for setting in recommend(hardware, lambda: True)}


def found_on(monkeypatch: pytest.MonkeyPatch, hardware: Hardware) -> str:
    monkeypatch.setattr("atari_dqn.bench.doctor.find_hardware", lambda path: hardware)
    return diagnosis_text(examine(Path()))


def test_machine_that_runs_the_tests_is_healthy(tmp_path: Path) -> None:
    assert examine(tmp_path).healthy


def test_every_rom_is_found(tmp_path: Path) -> None:
    assert "108 of 108 found" in {check.text for check in examine(tmp_path).checks if check.name == "ROMs"}


@pytest.mark.parametrize(("compiler", "said"), [("python3", "python3: "), ("no-such", "no no-such: ")])
def test_compiler_is_named_whether_it_is_there_or_not(
    compiler: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", compiler)
    found = {check.name: check.text for check in examine(tmp_path).checks}["C++ compiler"]
    assert found.startswith(said)


@pytest.mark.parametrize(
    ("machine", "lacking", "status", "said"),
    [
        (("linux", "x86_64"), (), "ok", "fp32 vectors of AVX2, portable"),
        (("linux", "x86_64"), ("portable",), "warn", "only fp32 vectors of AVX2:"),
        (("linux", "x86_64"), ("products",), "warn", "only portable:"),
        (("linux", "x86_64"), ("portable", "products"), "warn", "not all compiled:"),
        (("linux", "aarch64"), ("products",), "warn", "only portable:"),
        (("linux", "riscv64"), ("products",), "ok", "portable"),
        (("darwin", "arm64"), ("portable", "products"), "warn", "not all compiled:"),
        (("win32", "AMD64"), ("portable", "products"), "ok", "none for this system"),
    ],
)
def test_kernels_that_could_be_compiled_and_are_not_are_a_warning(
    machine: tuple[str, str],
    lacking: tuple[str, ...],
    status: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(library.sys, "platform", machine[0])
    monkeypatch.setattr(library.platform, "machine", lambda: machine[1])
    monkeypatch.setattr(library, "instruction_set", lambda: "avx2")
    monkeypatch.setattr(library, "library", lambda name: None if name in lacking else object())
    monkeypatch.setattr(library, "_is_compiled", lambda name: name not in lacking)
    monkeypatch.setattr(library, "instruction_set_lacking", lambda: None)
    monkeypatch.setattr(library, "uses_threads", lambda: True)
    monkeypatch.setattr(library, "units", lambda: () if "products" in lacking else ("fp32 vectors",))
    found = {check.name: check for check in examine(Path()).checks}["kernels"]
    assert (found.status, said in found.text) == (status, True)


def kernels_check() -> Check:
    return {check.name: check for check in examine(Path()).checks}["kernels"]


def test_kernels_that_cannot_be_loaded_are_a_warning_with_the_error_of_the_loader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(library, "libraries_lacking", lambda: ("products",))
    monkeypatch.setattr(library, "load_error", {"products": "GLIBCXX_3.4.32 not found"}.get)
    check = kernels_check()
    assert (check.status, "GLIBCXX_3.4.32 not found" in check.text) == ("warn", True)
    assert "C++ runtime library" in check.remedy


def test_libraries_of_other_sources_are_not_loaded_where_kernels_are_switched_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(file: str, functions: str) -> None:
        raise UserError("was compiled from other sources")

    monkeypatch.setattr(library, "_load", refuse)
    monkeypatch.setattr(library, "instruction_set", lambda: "none")
    assert kernels_check().status == "warn"


@pytest.mark.skipif(not library.units(), reason="no kernels of products on this machine")
def test_kernels_of_one_thread_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "uses_threads", lambda: False)
    check = kernels_check()
    assert (check.status, "on one core: PyTorch has no OpenMP" in check.text) == ("warn", True)


@pytest.mark.skipif(not library.units(), reason="no kernels of products on this machine")
def test_better_instruction_set_without_kernels_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "cpu_flags", lambda: ("avx2", "avx512f"))
    monkeypatch.setattr(library, "_bits", lambda name: int(name == "avx2"))
    check = kernels_check()
    assert (check.status, "not compiled for AVX-512" in check.text) == ("warn", True)


def test_kernels_that_are_switched_off_are_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "instruction_set", lambda: "none")
    monkeypatch.setattr(library, "units", lambda: ())
    check = kernels_check()
    assert (check.status, check.remedy) == ("warn", "unset ATARI_DQN_ISA")


def test_instruction_set_that_is_not_here_is_a_failure_with_those_that_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(library.OVERRIDE, "sse")
    for function in ("instruction_set", "library"):
        monkeypatch.setattr(library, function, getattr(library, function).__wrapped__)
    check = kernels_check()
    assert check.status == "fail"
    assert check.text.startswith("ATARI_DQN_ISA=sse is not available on this machine; available: ")


@pytest.mark.parametrize(
    ("variables", "status", "said"),
    [
        ({"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "2000"}, "ok", "soon sleep"),
        ({"OMP_WAIT_POLICY": "PASSIVE"}, "ok", "soon sleep"),
        ({"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "2001"}, "warn", "keep their cores busy"),
        ({"GOMP_SPINCOUNT": "infinity"}, "warn", "keep their cores busy"),
        ({"GOMP_SPINCOUNT": "0"}, "ok", "soon sleep"),
        ({"KMP_BLOCKTIME": "0"}, "ok", "soon sleep"),
        ({"KMP_BLOCKTIME": "200"}, "warn", "keep their cores busy"),
        ({"OMP_WAIT_POLICY": "active"}, "warn", "keep their cores busy (OMP_WAIT_POLICY=active)"),
        ({"GOMP_SPINCOUNT": "300000"}, "warn", "keep their cores busy (GOMP_SPINCOUNT=300000)"),
        ({}, "warn", "keep their cores busy (torch was imported first)"),
    ],
)
def test_threads_that_keep_their_cores_busy_while_they_wait_are_a_warning(
    variables: dict[str, str], status: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "wait_variables", lambda: variables)
    check = probes.openmp_check()
    assert (check.status, said in check.text) == (status, True)


def test_pytorch_without_openmp_is_a_warning_with_its_consequence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.openmp, "is_available", lambda: False)
    check = {check.name: check for check in examine(Path()).checks}["OpenMP"]
    assert (check.status, "the kernels cannot be loaded" in check.text) == ("warn", True)


def test_two_cores_without_gpu_learn_and_emulate_many_environments(laptop: Hardware) -> None:
    assert settings(laptop) == {
        "--device": "cpu",
        "learner.precision": '"fp32"',
        "learner.threads": "2",
        "learner.compile": "false",
        "system.workers": "1",
    }


def test_processor_with_bf16_may_use_it(laptop: Hardware) -> None:
    assert settings(replace(laptop, cpu_flags=("avx512_bf16",)))["learner.precision"] == '"bf16"'


def test_unidentified_processor_keeps_to_fp32_with_the_reason(laptop: Hardware) -> None:
    settings = recommend(replace(laptop, cpu_flags=None), lambda: True)
    (setting,) = (one for one in settings if one.key == "learner.precision")
    assert setting.value == '"fp32"'
    assert setting.reason == "the system does not say whether the processor multiplies bf16"


def test_gpu_gets_every_core_but_two_as_worker(laptop: Hardware, gpu: Gpu) -> None:
    found = settings(replace(laptop, cores_usable=16, gpus=(gpu,)))
    assert (found["--device"], found["system.workers"], found["learner.precision"]) == (
        "cuda",
        "14",
        '"bf16"',
    )


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


def test_free_memory_is_said_before_all_of_it(monkeypatch: pytest.MonkeyPatch, laptop: Hardware) -> None:
    assert "12.00 GB of 16.00 GB free" in found_on(monkeypatch, laptop)


def test_each_gpu_has_its_number_and_its_memory(
    monkeypatch: pytest.MonkeyPatch, laptop: Hardware, gpu: Gpu
) -> None:
    full = replace(gpu, memory_free_bytes=0)
    text = found_on(monkeypatch, replace(laptop, gpus=(gpu, full)))
    assert [" ".join(line.split()[1:]) for line in text.splitlines() if "Example GPU;" in line] == [
        "GPU 0 Example GPU; 20.00 GB of 24.00 GB free", "GPU 1 Example GPU; 0.0 MB of 24.00 GB free",
    ]  # fmt: skip


def test_missing_package_is_a_warning_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atari_dqn.bench.doctor.versions", lambda: {"numpy": "2.0", "ale-py": None})
    check = {check.name: check for check in examine(Path()).checks}["versions"]
    assert (check.status, check.remedy) == ("warn", "install ale-py: pip install -e .")


def test_emulator_without_roms_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ale_py.roms.get_rom_path", lambda name: None)
    check = probes.roms_check()
    assert (check.status, check.text) == ("fail", "0 of 108 found")


@pytest.mark.parametrize(("installed", "status"), [(exactness().ale_version, "ok"), ("9.9", "warn")])
def test_emulator_of_another_version_than_was_tested_is_a_warning(
    installed: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "version", lambda name: installed)
    assert probes.exactness_check().status == status


def test_disk_that_the_plan_of_the_papers_run_fits_on_is_enough(
    monkeypatch: pytest.MonkeyPatch, laptop: Hardware
) -> None:
    assert "ok    disk           1.00 GB free" in found_on(monkeypatch, replace(laptop, disk_free_bytes=GB))


def load_check(monkeypatch: pytest.MonkeyPatch, *, others: float, threads: int) -> Check:
    """Report on the load of two cores, of which other programs use this many."""
    found = Contention(usable_cores=2, others_cores=others, waiting_share=0.0)
    monkeypatch.setattr("atari_dqn.bench.doctor.contention", lambda before, after: found)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    return {check.name: check for check in examine(Path()).checks}["load"]


def test_programs_that_take_a_core_of_torchs_threads_are_a_warning_with_remedies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check = load_check(monkeypatch, others=1.0, threads=2)
    assert (check.status, check.text) == (
        "warn",
        "other programs use 1.0 of 2 cores, and torch has 2 threads, which then wait for one another",
    )
    assert "dqn train … --set learner.threads=1" in check.remedy
    assert "dqn resume RUN_DIR --threads 1" in check.remedy


@pytest.mark.parametrize(("others", "threads"), [(0.1, 2), (1.0, 1)])
def test_load_that_leaves_torch_its_cores_is_no_warning(
    others: float, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = load_check(monkeypatch, others=others, threads=threads)
    assert (check.status, check.text) == ("ok", f"other programs use {others} of 2 cores")


@pytest.mark.parametrize("module", ["torch", "cv2", "ale_py.roms"])
def test_package_that_does_not_load_is_a_finding(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    def load(name: str) -> object:
        if name == module:
            raise ImportError("libGL.so.1: cannot open shared object file")
        return importlib.import_module(name)

    monkeypatch.setattr("atari_dqn.bench.doctor.importlib.import_module", load)
    diagnosis = examine(Path())
    assert not diagnosis.healthy
    assert "libGL.so.1" in diagnosis_text(diagnosis)


@pytest.mark.parametrize("columns", [40, 60])
def test_text_is_broken_at_words_in_a_narrow_terminal(columns: int) -> None:
    check = Check(name="shared memory", status="fail", text="too little of it, " * 9, remedy="give more " * 9)
    reason = "the processor multiplies bf16; a track keeps it"
    setting = Setting(key="learner.precision", value="bf16", reason=reason)
    text = diagnosis_text(Diagnosis(checks=(check,), settings=(setting,)), columns)
    assert max(map(len, text.splitlines())) <= columns
    assert " ".join(text.split()).count("too little of it,") == 9


def test_text_stays_within_80_columns(monkeypatch: pytest.MonkeyPatch, laptop: Hardware, gpu: Gpu) -> None:
    poor = replace(
        laptop, memory_available_bytes=GB, disk_free_bytes=GB // 2, shared_memory_free_bytes=GB, gpus=(gpu,)
    )
    assert max(len(line) for line in found_on(monkeypatch, poor).splitlines()) <= 80


def suits(hardware: Hardware, milliseconds: dict[tuple[str, int], float]) -> list[str]:
    times = [
        UpdateTime(precision=precision, threads=threads, seconds=taken / 1000)
        for (precision, threads), taken in milliseconds.items()
    ]
    found = {setting.key: setting.value for setting in recommend_for(times, hardware)}
    return [found[key] for key in ("learner.threads", "system.workers", "learner.precision")]


def test_choice_with_the_quickest_update_suits(laptop: Hardware) -> None:
    times = {("fp32", 1): 20.0, ("fp32", 2): 12.0, ("bf16", 1): 8.0, ("bf16", 2): 10.0}
    assert suits(laptop, times) == ["1", "1", '"bf16"']
    assert suits(laptop, {**times, ("fp32", 2): 7.0}) == ["2", "1", '"fp32"']


def test_threads_that_gain_less_than_a_twentieth_are_left_to_the_emulators(laptop: Hardware) -> None:
    four_cores = replace(laptop, cores_usable=4)
    assert suits(four_cores, {("fp32", 1): 20.0, ("fp32", 2): 10.4, ("fp32", 4): 10.0})[:2] == ["2", "2"]
    assert suits(four_cores, {("fp32", 1): 20.0, ("fp32", 2): 10.6, ("fp32", 4): 10.0})[:2] == ["4", "1"]


def test_machine_with_one_core_emulates_in_the_process_that_learns(laptop: Hardware) -> None:
    assert suits(replace(laptop, cores_usable=1), {("fp32", 1): 20.0}) == ["1", "0", '"fp32"']


def test_measured_times_are_said_in_milliseconds(laptop: Hardware) -> None:
    times = [UpdateTime(precision="fp32", threads=threads, seconds=0.02 / threads) for threads in (1, 2)]
    reasons = {setting.key: setting.reason for setting in recommend_for(times, laptop)}
    assert reasons["learner.threads"] == "an update takes 10.0 ms (fp32 with 1: 20.0)"


@pytest.mark.slow
def test_every_choice_is_timed_and_torchs_threads_are_put_back() -> None:
    before = torch.get_num_threads()
    times = measure_update_times(precisions=("fp32",), cores=2, seconds=0.01)
    assert [(time.precision, time.threads) for time in times] == [("fp32", 1), ("fp32", 2)]
    assert all(0 < time.seconds < 60 for time in times)
    assert torch.get_num_threads() == before


def test_machine_with_a_gpu_has_nothing_to_time_and_says_so(
    monkeypatch: pytest.MonkeyPatch, laptop: Hardware, gpu: Gpu
) -> None:
    with_gpu = replace(laptop, gpus=(gpu,))
    monkeypatch.setattr("atari_dqn.bench.doctor.find_hardware", lambda path: with_gpu)
    diagnosis = examine(Path(), measured_seconds=0.01)
    assert diagnosis.settings == recommend(with_gpu, lambda: True)
    assert diagnosis.checks[-1].text == "not measured: runs use the GPU"


@pytest.mark.parametrize(("options", "timed"), [([], False), (["--measure"], True)])
def test_updates_are_timed_when_asked_for_alone(
    monkeypatch: pytest.MonkeyPatch, options: list[str], timed: bool
) -> None:
    asked = []

    def examined(path: Path, *, measured_seconds: float) -> Diagnosis:
        asked.append(measured_seconds > 0)
        return Diagnosis(checks=examine(path).checks[:1], settings=())

    monkeypatch.setattr("atari_dqn.bench.doctor.examine", examined)
    assert CliRunner().invoke(app, ["doctor", *options]).exit_code == 0
    assert asked == [timed]
