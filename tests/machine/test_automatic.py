"""The resolution of `auto` by fixed tables, after which no part of a run has the value `auto`."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny import CPU, tiny, tiny_spec

from atari_dqn.assembly.parts import build_network
from atari_dqn.envs.games import make_envs
from atari_dqn.errors import UserError
from atari_dqn.machine import automatic
from atari_dqn.machine.automatic import Machine, choices_text, resolve_auto
from atari_dqn.machine.hardware import Gpu, Hardware
from atari_dqn.spec.constraints import AUTO
from atari_dqn.spec.digest import spec_digest
from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.keys import AUTO_KEYS, Scalar, flatten
from atari_dqn.spec.loader import load_resolved, load_spec
from atari_dqn.spec.render import resolved_toml
from atari_dqn.spec.schema import Spec
from atari_dqn.telemetry.events import Event
from atari_dqn.train import launch
from atari_dqn.train.build import assemble

RUNS = Path(__file__).parents[2] / "runs"
EVERY = [f"{key}={AUTO}" for key in AUTO_KEYS]


def machine(
    hardware: Hardware,
    *,
    device: str = "cpu",
    kernels: bool = True,
    environment: Mapping[str, str] | None = None,
) -> Machine:
    return Machine(
        device=device, hardware=hardware, has_kernels=lambda: kernels, environment=environment or {}
    )


def chosen(key: str, machine: Machine, *overrides: str) -> Scalar:
    """Return the value of a key that is `auto` in a spec of Pong, with overrides."""
    resolved, _ = resolve_auto(load_spec(RUNS / "pong_trackA.toml", [f"{key}={AUTO}", *overrides]), machine)
    return flatten(resolved.spec)[key]


@pytest.mark.fault("H09")
@pytest.mark.parametrize(
    ("flags", "precision"),
    [
        (("avx2", "avx512f", "avx512_bf16"), "bf16"),
        (("avx2", "avx512f", "amx_bf16"), "bf16"),
        (("bf16",), "bf16"),
        (("avx2", "avx512f"), "fp32"),
        (("avx2",), "fp32"),
        ((), "fp32"),
        (None, "fp32"),
    ],
)
def test_precision_of_a_processor_follows_from_its_instructions(
    flags: tuple[str, ...] | None, precision: str, laptop: Hardware
) -> None:
    assert chosen("learner.precision", machine(replace(laptop, cpu_flags=flags))) == precision


@pytest.mark.parametrize(
    ("capability", "precision"), [((9, 0), "bf16"), ((8, 0), "bf16"), ((7, 5), "fp32"), ((7, 0), "fp32")]
)
def test_precision_of_a_gpu_follows_from_its_capability(
    capability: tuple[int, int], precision: str, laptop: Hardware, gpu: Gpu
) -> None:
    gpus = (gpu, replace(gpu, capability=capability))
    found = machine(replace(laptop, gpus=gpus), device="cuda:1")
    assert chosen("learner.precision", found) == precision


@pytest.mark.parametrize(
    ("network", "kernels", "precision"),
    [("data_efficient", True, "fp32"), ("data_efficient", False, "bf16"), ("nature", True, "bf16")],
)
def test_network_that_kernels_compute_in_fp32_alone_is_fp32(
    network: str, kernels: bool, precision: str, laptop: Hardware
) -> None:
    found = machine(replace(laptop, cpu_flags=("avx512f", "avx512_bf16")), kernels=kernels)
    assert chosen("learner.precision", found, f"network.kind={network}") == precision


def test_precision_of_a_cpu_run_does_not_depend_on_the_gpu(laptop: Hardware, gpu: Gpu) -> None:
    assert chosen("learner.precision", machine(replace(laptop, gpus=(gpu,)))) == "fp32"


def test_network_of_another_package_is_in_fp32(laptop: Hardware, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic, "_BF16_NETWORKS", frozenset())
    assert chosen("learner.precision", machine(replace(laptop, cpu_flags=("amx_bf16",)))) == "fp32"


@pytest.mark.parametrize(
    ("cores", "physical", "network", "threads"),
    [
        (1, 1, "nature", 1),
        (2, 2, "nature", 2),
        (4, 2, "nature", 2),  # two threads of a core share its arithmetic
        (2, 64, "nature", 2),  # a container is granted two
        (64, 64, "nature", 8),
        (64, 64, "dopamine", 8),
        (64, 64, "data_efficient", 4),
        (2, 2, "data_efficient", 2),
        (64, 64, "impala", 16),
    ],
)
def test_threads_are_the_cores_that_an_update_can_use(
    cores: int, physical: int, network: str, threads: int, laptop: Hardware
) -> None:
    found = machine(replace(laptop, cores_usable=cores, cores_physical=physical))
    assert chosen("learner.threads", found, f"network.kind={network}") == threads


@pytest.mark.parametrize(
    ("cores", "network", "threads"),
    [
        (1, "data_efficient", 1),
        (2, "data_efficient", 1),
        (4, "data_efficient", 3),
        (64, "data_efficient", 4),
        (2, "nature", 2),
    ],
)
def test_small_network_without_kernels_leaves_a_core_free(
    cores: int, network: str, threads: int, laptop: Hardware
) -> None:
    found = machine(replace(laptop, cores_usable=cores, cores_physical=cores), kernels=False)
    assert chosen("learner.threads", found, f"network.kind={network}") == threads


def test_threads_of_a_run_on_a_gpu_are_one(laptop: Hardware, gpu: Gpu) -> None:
    assert chosen("learner.threads", machine(replace(laptop, gpus=(gpu,)), device="cuda")) == 1


@pytest.mark.parametrize(("wanted", "threads"), [("1", 1), ("2", 2), ("2,4", 2), ("64", 2), ("", 2)])
def test_threads_that_the_user_has_set_for_openmp_count(wanted: str, threads: int, laptop: Hardware) -> None:
    assert chosen("learner.threads", machine(laptop, environment={"OMP_NUM_THREADS": wanted})) == threads


def test_threads_in_the_spec_count_more_than_those_for_openmp(laptop: Hardware) -> None:
    resolved = load_spec(RUNS / "pong_trackA.toml", ["learner.threads=2"])
    found, _ = resolve_auto(resolved, machine(laptop, environment={"OMP_NUM_THREADS": "1"}))
    assert found.spec.learner.threads == 2


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5"])
def test_threads_for_openmp_that_are_no_number_are_an_error(text: str, laptop: Hardware) -> None:
    with pytest.raises(UserError, match=f"OMP_NUM_THREADS: found '{text}', expected a number of threads"):
        chosen("learner.threads", machine(laptop, environment={"OMP_NUM_THREADS": text}))


@pytest.mark.parametrize(
    ("flags", "kernels", "network", "compiled"),
    [
        (("avx2", "avx512f"), False, "data_efficient", True),
        (("avx2", "avx512f"), True, "data_efficient", False),
        (("avx2",), False, "data_efficient", False),
        (("avx2", "avx512f"), False, "nature", False),
    ],
)
def test_compilation_is_chosen_where_it_was_measured_to_be_faster(
    flags: tuple[str, ...],
    kernels: bool,
    network: str,
    compiled: bool,
    laptop: Hardware,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(automatic, "has_compiler", lambda: True)
    found = machine(replace(laptop, cpu_flags=flags), kernels=kernels)
    assert chosen("learner.compile", found, f"network.kind={network}") is compiled


@pytest.mark.parametrize(
    ("overrides", "compiled"),
    [
        (("network.kind=impala",), True),
        (("network.kind=nature",), True),
        (("network.kind=dopamine",), False),
        (("network.kind=nature", "replay.kind=rollouts"), False),
        (("network.kind=nature", "replay.kind=sequences", "replay.burn_in_steps=0"), False),
    ],
)
def test_networks_that_gain_by_it_are_compiled_on_a_gpu(
    overrides: tuple[str, ...],
    compiled: bool,
    laptop: Hardware,
    gpu: Gpu,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _give_compilers(monkeypatch)
    found = machine(replace(laptop, gpus=(gpu,)), device="cuda")
    assert chosen("learner.compile", found, *overrides) is compiled


@pytest.mark.parametrize(("capability", "compiled"), [((6, 1), False), ((7, 0), True), ((8, 0), True)])
def test_only_gpus_that_triton_compiles_for_get_compiled_code(
    capability: tuple[int, int], compiled: bool, laptop: Hardware, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    _give_compilers(monkeypatch)
    found = machine(replace(laptop, gpus=(replace(gpu, capability=capability),)), device="cuda")
    assert chosen("learner.compile", found, "network.kind=impala") is compiled


@pytest.mark.parametrize("lacking", ["has_compiler", "find_spec"])
def test_nothing_is_compiled_on_a_gpu_without_both_compilers(
    lacking: str, laptop: Hardware, gpu: Gpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    _give_compilers(monkeypatch)
    monkeypatch.setattr(automatic, lacking, lambda *_: None)
    found = machine(replace(laptop, gpus=(gpu,)), device="cuda")
    assert chosen("learner.compile", found, "network.kind=impala") is False


def _give_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(automatic, "has_compiler", lambda: True)
    monkeypatch.setattr(automatic, "find_spec", lambda _: object())


def test_compilation_is_not_chosen_without_a_compiler(
    laptop: Hardware, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(automatic, "has_compiler", lambda: False)
    found = machine(replace(laptop, cpu_flags=("avx512f",)), kernels=False)
    assert chosen("learner.compile", found, "network.kind=data_efficient") is False


@pytest.mark.parametrize(
    ("cores", "envs", "workers"), [(1, 8, 0), (2, 1, 0), (2, 8, 1), (16, 1, 0), (16, 8, 8), (64, 64, 16)]
)
def test_workers_are_one_for_each_core_but_one_and_environment(
    cores: int, envs: int, workers: int, laptop: Hardware
) -> None:
    found = machine(replace(laptop, cores_usable=cores, cores_physical=cores))
    assert chosen("system.workers", found, f"env.num_envs={envs}") == workers


@pytest.mark.parametrize(("cores", "workers"), [(1, 0), (2, 1), (4, 2), (16, 14)])
def test_workers_of_a_run_on_a_gpu_are_all_cores_but_two(
    cores: int, workers: int, laptop: Hardware, gpu: Gpu
) -> None:
    found = machine(replace(laptop, cores_usable=cores, gpus=(gpu,)), device="cuda")
    assert chosen("system.workers", found, "env.num_envs=64") == workers


@pytest.mark.parametrize(("cores", "workers"), [(1, 0), (2, 2), (8, 8)])
def test_workers_of_rollouts_are_one_for_each_core(cores: int, workers: int, laptop: Hardware) -> None:
    found = machine(replace(laptop, cores_usable=cores, cores_physical=cores))
    resolved, _ = resolve_auto(load_spec(RUNS / "pqn.toml"), found)
    assert resolved.spec.system.workers == workers


def test_toy_game_has_no_workers(laptop: Hardware) -> None:
    found = machine(replace(laptop, cores_usable=16, cores_physical=16))
    resolved, _ = resolve_auto(tiny("system.workers=auto", "env.num_envs=8"), found)
    assert resolved.spec.system.workers == 0


@pytest.mark.parametrize(("flags", "written"), [(("avx2",), "fp32"), (("avx512_bf16",), "bf16")])
def test_resolved_spec_equals_one_with_the_values_written(
    flags: tuple[str, ...], written: str, laptop: Hardware
) -> None:
    resolved, _ = resolve_auto(tiny(*EVERY), machine(replace(laptop, cpu_flags=flags)))
    expected = tiny(
        f"learner.precision={written}", "learner.threads=2", "learner.compile=false", "system.workers=0"
    )
    assert resolved == expected
    assert resolved_toml(resolved) == resolved_toml(expected)
    assert spec_digest(resolved.spec) == spec_digest(expected.spec)


def test_auto_resolved_to_the_tracks_value_is_no_deviation(laptop: Hardware) -> None:
    resolved, _ = resolve_auto(load_spec(RUNS / "pong_trackA.toml", EVERY), machine(laptop))
    assert resolved.track_label == "A"


def test_auto_resolved_to_another_precision_is_the_only_deviation(laptop: Hardware) -> None:
    found = machine(replace(laptop, cpu_flags=("amx_bf16", "avx512f"), cores_usable=1))
    resolved, _ = resolve_auto(load_spec(RUNS / "pong_trackA.toml", EVERY), found)
    assert resolved.deviations == ("learner.precision",)


def test_choices_are_formatted_as_one_line(laptop: Hardware) -> None:
    _, choices = resolve_auto(load_spec(RUNS / "pong_quick.toml"), machine(laptop))
    assert choices_text(choices) == (
        'chosen for this machine: learner.precision = "fp32" (the processor only emulates bf16), '
        "learner.threads = 2 (2 cores), learner.compile = false (it is not known to be faster), "
        "system.workers = 1 (1 core beyond the learner's)"
    )


def test_spec_without_auto_is_not_changed(laptop: Hardware) -> None:
    resolved = tiny("learner.precision=bf16")
    assert resolve_auto(resolved, machine(laptop)) == (resolved, ())


def test_kernels_are_looked_for_only_where_they_decide(laptop: Hardware) -> None:
    def unexpected() -> bool:
        raise AssertionError("importing torch takes a second")

    found = Machine(device="cpu", hardware=laptop, has_kernels=unexpected, environment={})
    resolve_auto(load_spec(RUNS / "pong_trackA.toml"), found)


@pytest.mark.fault("H09")
def test_specs_for_laptops_leave_precision_to_the_machine() -> None:
    names = ["pong_quick.toml", "pong_1m_dqn.toml", "pong_1m_iqn.toml", "pong_1m_rainbow.toml"]
    assert {load_spec(RUNS / name).spec.learner.precision for name in names} == {AUTO}


def test_first_command_of_the_readme_leaves_everything_to_the_machine() -> None:
    values = flatten(load_spec(RUNS / "pong_quick.toml").spec)
    assert {values[key] for key in AUTO_KEYS} == {AUTO}


@pytest.mark.fault("H09")
@pytest.mark.parametrize("track", ["A", "B"])
def test_papers_tracks_leave_threads_and_workers_to_the_machine_and_are_in_fp32(track: str) -> None:
    spec = load_spec(RUNS / f"pong_track{track}.toml").spec
    assert (spec.learner.precision, spec.learner.threads, spec.system.workers) == ("fp32", AUTO, AUTO)


def test_no_network_is_built_before_auto_is_resolved() -> None:
    spec = tiny_spec("learner.precision=auto")
    envs = make_envs(game=spec.game, env=spec.env, num_envs=1, seed=spec.seed, stream="training")
    with pytest.raises(AssertionError, match="resolve_auto comes first"):
        build_network(spec, envs.info, CPU)


@pytest.mark.parametrize("key", AUTO_KEYS)
def test_no_training_is_assembled_before_auto_is_resolved(key: str) -> None:
    with pytest.raises(AssertionError, match="resolve_auto comes first"):
        assemble(tiny_spec(f"{key}={AUTO}"), CPU)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("learner.precision", 'one of "fp32", "bf16"'),
        ("learner.threads", "an integer at least 1"),
        ("learner.compile", "true or false"),
        ("system.workers", "an integer at least 0"),
    ],
)
def test_auto_in_the_spec_of_a_run_is_an_error(key: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(resolved_toml(tiny(f"{key}={AUTO}")))
    with pytest.raises(SpecError, match=f'{key}: found "auto" in the spec of a run, expected {expected}$'):
        load_resolved(tmp_path / "spec.toml")


class Notices:
    """A view that records its messages."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def handle(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None: ...


@pytest.fixture(scope="module")
def auto_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Spec, str]:
    """A run of a spec that leaves everything to a laptop, its resolved spec, and the choices as a line."""
    laptop = Hardware(
        cpu_model="Example", cores_physical=2, cores_logical=2, cores_usable=2, cpu_flags=("avx2",),
        memory_bytes=1, memory_available_bytes=1, disk_free_bytes=1, shared_memory_free_bytes=1, gpus=(),
    )  # fmt: skip
    resolved, choices = resolve_auto(tiny(*EVERY), machine(laptop))
    origin = launch.Origin(command_line=["dqn", "train"], hardware=laptop, choices=choices)
    run = tmp_path_factory.mktemp("auto") / "run"
    before = torch.get_num_threads()
    try:
        launch.start(resolved, run, device=CPU, views=[Notices()], origin=origin)
    finally:
        torch.set_num_threads(before)
    return run, resolved.spec, choices_text(choices)


@pytest.mark.fault("H09")
def test_spec_of_a_run_has_the_values_chosen(auto_run: tuple[Path, Spec, str]) -> None:
    run, spec, _ = auto_run
    assert load_resolved(run / "spec.toml").spec == spec


def test_provenance_of_a_run_has_the_values_chosen(auto_run: tuple[Path, Spec, str]) -> None:
    run, _, _ = auto_run
    assert json.loads((run / "provenance.json").read_text())["auto"] == {
        "learner.precision": "fp32",
        "learner.threads": 2,
        "learner.compile": False,
        "system.workers": 0,
    }


def test_number_of_torchs_threads_is_recorded_as_in_earlier_versions(
    auto_run: tuple[Path, Spec, str],
) -> None:
    run, _, _ = auto_run
    assert json.loads((run / "provenance.json").read_text())["torch_threads"] == 2


@pytest.mark.fault("H09")
def test_run_says_in_one_line_what_was_chosen(auto_run: tuple[Path, Spec, str]) -> None:
    run, _, line = auto_run
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    assert [event["message"] for event in events if event["kind"] == "auto"] == [line]
