import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from types import SimpleNamespace

import pytest
import torch
from tiny import CPU, MEMORY, ROLLOUTS, tiny_spec
from typer.testing import CliRunner
from without_kernels import leave_to_torch

from atari_dqn.agent.torsos import NatureTorso
from atari_dqn.bench import ceilings, measurement
from atari_dqn.bench.kernels import kernels_of
from atari_dqn.bench.measurement import PARTS, Bench, bench, bench_data, bench_text
from atari_dqn.cli.app import app
from atari_dqn.fast.cpu.library import unit_for
from atari_dqn.fast.torsos import ConvolutionStack
from atari_dqn.spec.constraints import given
from atari_dqn.spec.contradictions import contradictions
from atari_dqn.spec.keys import flatten
from atari_dqn.train.rate import measure_rate, small, timed


@pytest.fixture(scope="module")
def result() -> Bench:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measurement, "_CEILING_SECONDS", 0.05)
        patch.setattr(ceilings, "_MATRIX_ROWS", 128)
        patch.setattr(ceilings, "_COPIED_BYTES", 2**20)
        return bench(tiny_spec(), name="tiny.toml", device=CPU, seconds=0.3)


@pytest.mark.slow
def test_rates_are_of_the_time_that_was_measured(result: Bench) -> None:
    rate = result.rate
    updates = rate.updates_per_second * rate.seconds
    assert updates == pytest.approx(round(updates), abs=1e-6)
    assert updates > 0
    assert rate.samples_per_second == pytest.approx(rate.updates_per_second * tiny_spec().learner.batch_size)


def test_shares_of_the_time_sum_to_one_and_are_named_by_the_text(result: Bench) -> None:
    assert sum(result.split.shares.values()) == pytest.approx(1.0)
    assert set(result.split.shares) == set(PARTS)


def test_text_fits_a_terminal_of_80_columns(result: Bench) -> None:
    assert max(len(line) for line in bench_text(result).splitlines()) <= 80


def test_text_has_the_whole_reason_for_what_computes_a_part(result: Bench) -> None:
    words = " ".join(bench_text(result).split())
    assert [reason for reason in result.acceleration if reason not in words] == []


def test_data_is_json_and_names_hardware_and_versions(result: Bench) -> None:
    data = json.loads(json.dumps(bench_data(result)))
    assert data["versions"]["torch"] == torch.__version__
    assert data["hardware"]["cores_usable"] == result.hardware.cores_usable


def test_compiled_update_has_no_share_of_kernels_that_it_does_not_use(result: Bench) -> None:
    compiled = replace(result, compiled=True)
    assert bench_data(compiled)["learner_share_of_ceiling"] is None
    assert "of an update is convolutions" in bench_text(result)
    assert "of an update is convolutions" not in bench_text(compiled)


@pytest.fixture(scope="module")
def with_actors(result: Bench) -> Bench:
    """A result of a spec with actors in other processes, which do not measure when emulators are busy."""
    rate = replace(result.rate, emulators_busy_share=None)
    return replace(result, rate=rate, split=rate)


def test_text_has_no_share_of_emulation_that_is_not_measured(result: Bench, with_actors: Bench) -> None:
    left_out = set(bench_text(result).splitlines()) - set(bench_text(with_actors).splitlines())
    assert [line.split("%  ")[1] for line in sorted(left_out)] == [
        "of plain emulation, while an emulator is busy", "emulators busy",
    ]  # fmt: skip


def test_share_of_emulation_that_is_not_measured_is_null_in_json(with_actors: Bench) -> None:
    data = json.loads(json.dumps(bench_data(with_actors)))
    assert (data["emulation_share_of_ceiling"], data["rate"]["emulators_busy_share"]) == (None, None)


def test_emulators_of_a_rate_are_busy_for_the_mean_of_their_times() -> None:
    envs = SimpleNamespace(busy_seconds=10.0, num_processes=2)
    clock = SimpleNamespace(env_frames=400, updates=25)

    def iterations() -> Iterator[None]:
        envs.busy_seconds, clock.updates = 16.0, 26
        yield

    training = SimpleNamespace(
        envs=envs, clock=clock, iterations=iterations, rows=lambda _: (),
        stopwatch=SimpleNamespace(lap=lambda: (8.0, {})),
        replay=SimpleNamespace(sampler=SimpleNamespace(batch_size=8)),
    )  # fmt: skip
    assert timed(training, seconds=0.0).emulators_busy_share == 0.375  # 6 of 2 × 8 seconds


@pytest.mark.slow
def test_rate_with_actors_has_no_share_of_busy_emulators() -> None:
    spec = tiny_spec("env.num_envs=4", "actors.mode=lockstep", "actors.processes=2",
                     "actors.fragment_steps=5", "actors.sync_period_steps=10")  # fmt: skip
    assert measure_rate(spec, CPU, seconds=0.0).emulators_busy_share is None


@pytest.mark.skipif(unit_for(torch.float32) is None, reason="no kernels of our own on this machine")
def test_share_of_pytorchs_libraries_is_their_time_over_the_updates(result: Bench) -> None:
    assert result.kernels.are_ours
    assert result.kernels.compute_repeats_once
    assert result.library_kernels is not None
    assert not result.library_kernels.are_ours
    assert not result.library_kernels.compute_repeats_once
    share, of_library = result.learner_share_of_ceiling, result.learner_share_of_library
    assert share is not None
    assert of_library == pytest.approx(share * result.library_kernels.seconds / result.kernels.seconds)
    assert "PyTorch's libraries take" in bench_text(result)


def test_shares_are_of_the_time_of_an_update_and_of_the_speed_of_a_busy_emulator(result: Bench) -> None:
    shares = {**dict.fromkeys(PARTS, 0.0), "learn": 0.5, "optimize": 0.25}
    found = replace(
        result,
        split=replace(result.split, shares=shares, updates_per_second=100.0),  # 7.5 ms an update
        kernels=replace(result.kernels, seconds=0.003),
        rate=replace(result.rate, frames_per_second=6_000.0, emulators_busy_share=0.5),
        emulating_processes=2,  # one is busy
        ceilings=replace(result.ceilings, emulator_frames_per_second=8_000.0),
    )
    shown = [line.split() for line in bench_text(found).splitlines()]
    assert ["40%", "of", "an", "update", "is", "convolutions", "and", "products"] in shown
    assert ["75%", "of", "plain", "emulation,", "while", "an", "emulator", "is", "busy"] in shown


def test_ceilings_are_shown_in_gigaflop_gigabytes_and_milliseconds(result: Bench) -> None:
    rates = replace(
        result.ceilings, fp32_flop_per_second=1.5e11, bf16_flop_per_second=2.5e11, copy_bytes_per_second=3e9
    )
    kernels = replace(result.kernels, calls=7, seconds=0.004, flop=2e8)
    words = " ".join(bench_text(replace(result, ceilings=rates, kernels=kernels)).split())
    assert "150.0 GFLOP/s in products of large matrices, fp32 250.0 GFLOP/s, bf16" in words
    assert "50.00 GFLOP/s in an update's 7 convolutions and products: 4.00 ms" in words
    assert "3.0 GB/s copied" in words


@pytest.fixture
def clock_of_whole_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that goes on by a second with each reading: three calls take four seconds."""
    monkeypatch.setattr(ceilings, "time", SimpleNamespace(perf_counter=count().__next__))
    monkeypatch.setattr(ceilings, "_MATRIX_ROWS", 8)
    monkeypatch.setattr(ceilings, "_COPIED_BYTES", 1_000)


def test_ceilings_are_rates_of_frames_operations_and_bytes(clock_of_whole_seconds: None) -> None:
    found = ceilings.measure_ceilings(tiny_spec(), CPU, seconds=4.0)
    assert found == ceilings.Ceilings(
        emulator_frames_per_second=0.75,
        fp32_flop_per_second=0.75 * 8 * 8 * (8 + 8),  # additions and multiplications
        bf16_flop_per_second=0.75 * 8 * 8 * (8 + 8),
        copy_bytes_per_second=750.0,
    )


def test_products_are_measured_in_both_precisions(
    clock_of_whole_seconds: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    dtypes = []
    monkeypatch.setattr(torch, "mm", lambda a, b: dtypes.append(a.dtype))
    ceilings.measure_ceilings(tiny_spec(), CPU, seconds=1.0)
    assert dtypes == 2 * [torch.float32] + 2 * [torch.bfloat16]


@pytest.mark.slow
def test_there_is_no_share_of_pytorchs_libraries_where_they_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    leave_to_torch(monkeypatch)
    found = bench(tiny_spec(), name="tiny.toml", device=CPU, seconds=0.1)
    assert not found.kernels.are_ours
    assert found.learner_share_of_library is None
    assert "PyTorch's libraries" not in bench_text(found)


@pytest.mark.parametrize("keys", [("learner.update_period_steps=32",), ROLLOUTS], ids=["rare", "rollouts"])
def test_rate_has_as_many_updates_for_its_frames_as_the_spec(keys: tuple[str, ...]) -> None:
    spec = tiny_spec(*keys)
    rate = measure_rate(spec, CPU, seconds=0.0)
    steps_per_second = rate.frames_per_second / spec.env.frame_skip
    assert steps_per_second / rate.updates_per_second == pytest.approx(
        spec.learner.update_period_steps,
        rel=0.15,  # the last frame of an episode is no step
    )


def test_actors_of_a_small_spec_play_no_more_ahead_than_they_must() -> None:
    spec = tiny_spec("env.num_envs=4", "actors.mode=free_running", "actors.processes=2",
                     "actors.fragment_steps=5", "actors.error_buffer_steps=10_000",
                     "training.total_frames=1_000_000")  # fmt: skip
    assert small(spec).actors.error_buffer_steps == 5 * 4 // 2
    assert list(contradictions(flatten(small(spec)))) == []


def test_small_replay_of_sequences_has_some_to_sample() -> None:
    spec = tiny_spec(*MEMORY, "replay.sequence_steps=80", "replay.burn_in_steps=40", "env.num_envs=16",
                     "replay.sequence_period_steps=40", "replay.capacity_steps=100_000",
                     "replay.prefill_steps=50_000", "training.total_frames=1_000_000")  # fmt: skip
    rows = small(spec).replay.prefill_steps // spec.env.num_envs
    assert rows > given(spec.replay.sequence_steps) + given(spec.replay.burn_in_steps)


@pytest.mark.parametrize(("envs", "n_step", "stack"), [(32, 20, 4), (1, 600, 4), (8, 1, 100)])
def test_small_spec_of_a_valid_one_contradicts_nothing(envs: int, n_step: int, stack: int) -> None:
    spec = tiny_spec(f"env.num_envs={envs}", f"toggles.n_step={n_step}", f"env.stack_frames={stack}",
                     "replay.capacity_steps=100_000", "replay.prefill_steps=50_000",
                     "training.total_frames=1_000_000")  # fmt: skip
    assert list(contradictions(flatten(small(spec)))) == []


def test_small_replay_holds_the_longest_window_of_an_annealed_n() -> None:
    spec = tiny_spec("toggles.annealing=true", "learner.n_step_start=40", "env.num_envs=20",
                     "replay.capacity_steps=100_000", "replay.prefill_steps=50_000",
                     "training.total_frames=1_000_000")  # fmt: skip
    assert list(contradictions(flatten(small(spec)))) == []


def recorded(function: Callable[[], object]) -> tuple[int, float]:
    kernels = kernels_of(function, CPU)
    return kernels.calls, kernels.flop


def test_kernels_of_a_product_are_counted_with_their_arithmetic() -> None:
    a, b = torch.ones(3, 5), torch.ones(5, 7)
    assert recorded(lambda: torch.mm(a, b).relu()) == (1, 2 * 3 * 5 * 7)


def test_kernels_of_a_linear_layer_are_its_three_products() -> None:
    layer, x = torch.nn.Linear(5, 7), torch.ones(3, 5, requires_grad=True)
    assert recorded(lambda: layer(x).sum().backward()) == (3, 3 * 2 * 3 * 5 * 7)


def test_kernels_of_a_convolution_are_counted_forward_and_back() -> None:
    layer, x = torch.nn.Conv2d(2, 3, 2), torch.ones(1, 2, 4, 4)  # 3×3 places, 2·2·2 weights for each of 3
    assert recorded(lambda: layer(x).sum().backward()) == (2, 2 * (2 * 9 * 8 * 3))


@pytest.mark.skipif(unit_for(torch.float32) is None, reason="no kernels of our own on this machine")
def test_kernels_of_a_chain_are_counted_layer_by_layer_forward_and_back() -> None:
    torso = NatureTorso(stack=4, frame_shape=(84, 84)).to(memory_format=torch.channels_last)
    frames = torch.zeros(2, 4, 84, 84, dtype=torch.uint8)
    first, second, third = (2 * 2 * places * weights for places, weights in (
        (20 * 20 * 32, 4 * 8 * 8), (9 * 9 * 64, 32 * 4 * 4), (7 * 7 * 64, 64 * 3 * 3)
    ))  # fmt: skip
    forward, of_weights = first + second + third, first + second + third
    stack = ConvolutionStack(torso.convolutions, torch.float32)
    found = recorded(lambda: stack.encode(frames).sum().backward())
    assert found == (2, forward + of_weights + second + third)


def test_bench_refuses_a_spec_that_is_not_there() -> None:
    result = CliRunner().invoke(app, ["bench", "none.toml"])
    assert "none.toml" in str(result.exception)
