"""The resolution of `learner.precision = "auto"`, after which no part of a run has the value `auto`."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import CPU, tiny, tiny_spec

from atari_dqn.assembly.parts import build_network
from atari_dqn.envs.games import make_envs
from atari_dqn.machine.automatic import precision_for, resolve_auto
from atari_dqn.machine.hardware import Gpu, Hardware
from atari_dqn.spec.digest import spec_digest
from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.loader import load_resolved, load_spec
from atari_dqn.spec.render import resolved_toml
from atari_dqn.telemetry.events import Event
from atari_dqn.train import launch

AUTO = "learner.precision=auto"
RUNS = Path(__file__).parents[2] / "runs"


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
    assert precision_for("cpu", replace(laptop, cpu_flags=flags)).value == precision


@pytest.mark.parametrize(
    ("capability", "precision"), [((9, 0), "bf16"), ((8, 0), "bf16"), ((7, 5), "fp32"), ((7, 0), "fp32")]
)
def test_precision_of_a_gpu_follows_from_its_capability(
    capability: tuple[int, int], precision: str, laptop: Hardware, gpu: Gpu
) -> None:
    gpus = (gpu, replace(gpu, capability=capability))
    assert precision_for("cuda:1", replace(laptop, gpus=gpus)).value == precision


def test_precision_of_a_cpu_run_does_not_depend_on_the_gpu(laptop: Hardware, gpu: Gpu) -> None:
    assert precision_for("cpu", replace(laptop, gpus=(gpu,))).value == "fp32"


@pytest.mark.parametrize(("flags", "written"), [(("avx2",), "fp32"), (("avx512_bf16",), "bf16")])
def test_resolved_spec_equals_one_with_the_value_written(
    flags: tuple[str, ...], written: str, laptop: Hardware
) -> None:
    hardware = replace(laptop, cpu_flags=flags)
    resolved, _ = resolve_auto(tiny(AUTO), device="cpu", hardware=hardware)
    expected = tiny(f"learner.precision={written}")
    assert resolved == expected
    assert resolved_toml(resolved) == resolved_toml(expected)
    assert spec_digest(resolved.spec) == spec_digest(expected.spec)


def test_auto_resolved_to_the_tracks_value_is_no_deviation(laptop: Hardware) -> None:
    spec = RUNS / "pong_trackA.toml"
    resolved, _ = resolve_auto(load_spec(spec, [AUTO]), device="cpu", hardware=laptop)
    assert resolved.track_label == "A"


def test_auto_resolved_to_another_value_is_a_deviation(laptop: Hardware) -> None:
    hardware = replace(laptop, cpu_flags=("amx_bf16",))
    spec = RUNS / "pong_trackA.toml"
    resolved, _ = resolve_auto(load_spec(spec, [AUTO]), device="cpu", hardware=hardware)
    assert resolved.deviations == ("learner.precision",)


def test_choice_is_formatted_as_one_line(laptop: Hardware) -> None:
    _, (choice,) = resolve_auto(tiny(AUTO), device="cpu", hardware=laptop)
    assert str(choice) == 'learner.precision = "auto" is "fp32" here: the processor only emulates bf16'


def test_spec_without_auto_is_not_changed(laptop: Hardware) -> None:
    resolved = tiny("learner.precision=bf16")
    assert resolve_auto(resolved, device="cpu", hardware=laptop) == (resolved, ())


@pytest.mark.fault("H09")
def test_specs_for_laptops_leave_precision_to_the_machine() -> None:
    names = ["pong_quick.toml", "pong_1m_dqn.toml", "pong_1m_iqn.toml", "pong_1m_rainbow.toml"]
    assert {load_spec(RUNS / name).spec.learner.precision for name in names} == {"auto"}


def test_no_network_is_built_before_auto_is_resolved() -> None:
    spec = tiny_spec(AUTO)
    envs = make_envs(game=spec.game, env=spec.env, num_envs=1, seed=spec.seed, stream="training")
    with pytest.raises(AssertionError, match="resolve_auto comes first"):
        build_network(spec, envs.info, CPU)


def test_auto_in_the_spec_of_a_run_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(resolved_toml(tiny(AUTO)))
    with pytest.raises(SpecError, match='found "auto" in the spec of a run, expected one of "fp32", "bf16"'):
        load_resolved(tmp_path / "spec.toml")


class Notices:
    """A view that records its messages."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def handle(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None: ...


@pytest.mark.fault("H09")
def test_a_run_keeps_the_value_chosen_and_says_that_it_was(tmp_path: Path, laptop: Hardware) -> None:
    resolved, choices = resolve_auto(tiny(AUTO), device="cpu", hardware=laptop)
    origin = launch.Origin(command_line=["dqn", "train"], hardware=laptop, choices=choices)
    run = tmp_path / "run"
    launch.start(resolved, run, device=CPU, views=[Notices()], origin=origin)
    assert load_resolved(run / "spec.toml").spec.learner.precision == "fp32"
    assert json.loads((run / "provenance.json").read_text())["auto"] == {"learner.precision": "fp32"}
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    assert [event["message"] for event in events if event["kind"] == "auto"] == [str(choices[0])]
