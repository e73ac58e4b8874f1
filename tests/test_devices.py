import subprocess
import sys
from pathlib import Path

import pytest
import torch

from atari_dqn.errors import UserError
from atari_dqn.machine.devices import (
    check_precision,
    make_current,
    replay_device,
    resolve_device,
    set_kernels,
)
from atari_dqn.spec.loader import load_spec
from atari_dqn.train.build import assemble

PONG = Path(__file__).parents[1] / "runs" / "pong_trackA.toml"


def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


def gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


def test_auto_is_the_cpu_without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    no_gpu(monkeypatch)
    assert resolve_device("auto") == torch.device("cpu")


def test_auto_is_the_first_gpu_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 2)
    assert resolve_device("auto") == torch.device("cuda", 0)


def test_cpu_is_the_cpu_even_with_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 1)
    assert resolve_device("cpu") == torch.device("cpu")


def test_gpu_is_chosen_by_its_index(monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(monkeypatch, 2)
    assert resolve_device("cuda:1") == torch.device("cuda", 1)


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "cuda:7"])
def test_missing_gpu_is_a_user_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    no_gpu(monkeypatch)
    with pytest.raises(UserError, match=rf"'{name}' is not available: found 0 CUDA devices; use"):
        resolve_device(name)


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "", "CPU", "cpu:0", "cuda:-1"])
def test_unknown_device_is_a_user_error(name: str) -> None:
    with pytest.raises(UserError, match=r"expected auto, cpu, cuda or cuda:N"):
        resolve_device(name)


@pytest.mark.fault("W12")
@pytest.mark.parametrize(
    ("precision", "device", "capability"),
    [
        ("bf16", "cuda:1", (8, 0)),
        ("bf16", "cuda:1", (9, 0)),
        ("fp32", "cuda:1", (7, 5)),
        ("bf16", "cpu", None),
    ],
)
def test_precision_that_the_device_has_is_taken(
    precision: str, device: str, capability, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: capability)
    check_precision(precision, torch.device(device))


@pytest.mark.fault("W12")
def test_bf16_on_a_gpu_without_it_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 5))
    spec = load_spec(PONG, ["learner.precision=bf16"]).spec
    with pytest.raises(
        UserError, match=r"'bf16', but cuda:1 has compute capability 7\.5, and bf16 needs 8\.0"
    ):
        assemble(spec, torch.device("cuda", 1))


def test_gpu_of_a_run_becomes_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[torch.device] = []
    monkeypatch.setattr(torch.cuda, "set_device", made.append)
    for device in (torch.device("cpu"), torch.device("cuda", 1)):
        make_current(device)
    assert made == [torch.device("cuda", 1)]


@pytest.mark.fault("P12")
@pytest.mark.parametrize("deterministic", [True, False])
def test_kernels_of_a_gpu_are_the_same_each_time_or_the_quickest(deterministic: bool) -> None:
    with torch.backends.cudnn.flags():
        set_kernels(torch.device("cuda"), threads=1, deterministic=deterministic)
        cudnn = torch.backends.cudnn
        assert (cudnn.deterministic, cudnn.benchmark) == (deterministic, not deterministic)
        assert not cudnn.allow_tf32


@pytest.mark.parametrize(
    ("system", "machine", "set_to"),
    [
        ("darwin", "arm64", [False]),
        ("darwin", "x86_64", []),
        ("linux", "aarch64", []),
        ("linux", "x86_64", []),
    ],
)
def test_convolutions_by_nnpack_are_disabled_on_apple_silicon_alone(
    system: str, machine: str, set_to: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[bool] = []
    monkeypatch.setattr("atari_dqn.machine.devices.sys.platform", system)
    monkeypatch.setattr("atari_dqn.machine.devices.platform.machine", lambda: machine)
    monkeypatch.setattr(torch.backends.nnpack, "set_flags", found.append)
    set_kernels(torch.device("cpu"), threads=torch.get_num_threads(), deterministic=True)
    assert found == set_to


GB = 10**9
GPU = torch.device("cuda", 1)


def room(monkeypatch: pytest.MonkeyPatch, free_bytes: int) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (free_bytes, 80 * GB))


def test_auto_replay_is_on_the_learners_device_if_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    room(monkeypatch, 9 * GB)
    assert replay_device("auto", learner=GPU, needed_bytes=7 * GB) == GPU


def test_auto_replay_is_in_ram_if_it_does_not_fit_on_the_gpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    room(monkeypatch, 7 * GB)
    assert replay_device("auto", learner=GPU, needed_bytes=7 * GB) == torch.device("cpu")


def test_replay_of_a_learner_on_the_cpu_is_in_ram() -> None:
    assert replay_device("auto", learner=torch.device("cpu"), needed_bytes=1) == torch.device("cpu")


def test_replay_device_cpu_keeps_the_replay_in_ram() -> None:
    assert replay_device("cpu", learner=GPU, needed_bytes=1) == torch.device("cpu")


def test_replay_on_a_gpu_that_the_learner_does_not_use_is_refused() -> None:
    with pytest.raises(UserError, match=r"replay.device is 'cuda', but the run is on cpu"):
        replay_device("cuda", learner=torch.device("cpu"), needed_bytes=1)


MKL_SAYS_WHETHER_IT_MAY_TAKE_FEWER = """
import ctypes, pathlib, torch
from atari_dqn.machine.devices import set_kernels
library = pathlib.Path(torch.__file__).with_name("lib") / "libtorch_cpu.so"
may = getattr(ctypes.CDLL(str(library)), "mkl_serv_get_dynamic")
before = may()
set_kernels(torch.device("cpu"), threads=2, deterministic=True)
print(before, may())
"""


@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="this build of PyTorch has no MKL")
@pytest.mark.slow
def test_products_take_as_many_threads_as_there_are_from_the_first_update_on() -> None:
    # a resume sets the number, after which MKL takes that many; a run begun without might round otherwise
    message = subprocess.run(
        [sys.executable, "-c", MKL_SAYS_WHETHER_IT_MAY_TAKE_FEWER], capture_output=True, text=True, check=True
    )
    assert message.stdout.split() == ["1", "0"]
