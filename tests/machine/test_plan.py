from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import SEQUENCES, tiny_spec

from atari_dqn.assembly.parts import build_network
from atari_dqn.assembly.replay_parts import build_replay
from atari_dqn.errors import UserError
from atari_dqn.evaluation.traces import BestReturn, Tracer
from atari_dqn.machine.devices import planned_replay_device
from atari_dqn.machine.hardware import Gpu, Hardware
from atari_dqn.machine.items import Item
from atari_dqn.machine.learner_items import network_shape, stored_bytes
from atari_dqn.machine.plan import Plan, check_fits, make_plan
from atari_dqn.machine.plan_text import plan_text
from atari_dqn.machine.sizes import CUDA_CONTEXT_BYTES, network_bytes, network_parameters, replay_bytes
from atari_dqn.replay.buffer import ring_rows
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.uniform import UniformSampler
from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.schema import Spec
from atari_dqn.train.build import assemble
from atari_dqn.types import GameInfo

GB = 10**9
MakeSpec = Callable[..., Spec]


@pytest.fixture
def make_spec(tmp_path: Path) -> MakeSpec:
    """Return a function that loads Track A on Pong with overrides."""
    (tmp_path / "pong.toml").write_text('track = "A"\ngame = "pong"\nseed = 1\n')
    return lambda *overrides: load_spec(tmp_path / "pong.toml", ["system.workers=0", *overrides]).spec


def test_predicted_memory_of_a_million_transitions_is_within_5_percent_of_the_design() -> None:
    assert replay_bytes(capacity_steps=1_000_000, screen_size_pixels=84) == pytest.approx(7.06e9, rel=0.05)


def test_predicted_replay_memory_is_within_5_percent_of_the_allocated_memory() -> None:
    rows = ring_rows(capacity_steps=2000, envs=1, stack=4, n_step=1)
    device = torch.device("cpu")
    ring = FrameRing(rows=rows, num_envs=1, frame_shape=(84, 84), stack=4, device=device)
    sampler = UniformSampler(capacity=rows, batch_size=32, seed=1, device=device)
    tensors = [value for part in (ring, sampler) for value in vars(part).values() if torch.is_tensor(value)]
    allocated = sum(tensor.nbytes for tensor in tensors)
    assert replay_bytes(capacity_steps=2000, screen_size_pixels=84) == pytest.approx(allocated, rel=0.05)


def test_memory_of_a_replay_of_sequences_is_that_of_its_rows() -> None:
    spec = tiny_spec(*SEQUENCES, "env.num_envs=8", "replay.capacity_steps=800", "replay.prefill_steps=100")
    with closing(assemble(spec, torch.device("cpu"))) as training:
        frames = training.replay.ring.rows * training.envs.num_envs * spec.env.screen_size_pixels**2
    assert stored_bytes(spec) == pytest.approx(frames, rel=0.05)


RAINBOW = ("toggles.noisy=true", "toggles.distribution=c51", "toggles.dueling=true")


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("toggles.dueling=true",),
        ("toggles.distribution=c51",),
        ("toggles.distribution=qr_dqn",),
        ("toggles.distribution=iqn", "toggles.dueling=true"),
        ("toggles.noisy=true",),
        ("network.memory=lstm", "toggles.dueling=true"),
        ("network.memory=gru", "network.memory_units=24", "network.memory_inputs=false"),
        ("network.memory=lstm", "network.hidden_units=0"),
        RAINBOW,
        ("network.kind=data_efficient", *RAINBOW),
        ("network.kind=dopamine", *RAINBOW),
        ("network.kind=dopamine",),
        ("network.kind=impala", "network.width=2", "env.screen_size_pixels=50"),
        ("network.kind=impala", "network.pool_size=3", "network.layer_norm=true", "toggles.dueling=true"),
        ("network.kind=impala", "network.spectral_norm=true"),
        ("toggles.distribution=hl_gauss",),
        ("network.kind=nature_layer_norm", "toggles.dueling=true"),
        ("network.hidden_units=100",),
    ],
)
def test_plan_counts_the_weights_of_the_network_that_is_built(
    make_spec: MakeSpec, overrides: tuple[str, ...]
) -> None:
    spec = make_spec("env.screen_size_pixels=36", *overrides)
    side = spec.env.screen_size_pixels
    info = GameInfo(game="pong", action_names=("a", "b", "c"), frame_shape=(side, side), rom_md5="")
    built = build_network(spec, info, torch.device("cpu"))
    assert network_parameters(network_shape(spec, 3)) == sum(weight.numel() for weight in built.parameters())


def test_nature_network_has_1686180_parameters_for_4_actions(make_spec: MakeSpec) -> None:
    assert network_parameters(network_shape(make_spec(), 4)) == 1_686_180


def test_plan_of_the_paper_counts_the_replay_in_ram(make_spec: MakeSpec, laptop: Hardware) -> None:
    plan = make_plan(make_spec(), num_actions=6, device="cpu", hardware=laptop)
    assert 7.5 * GB < plan.bytes("ram") < 7.8 * GB


def test_learner_holds_two_networks_gradients_and_two_numbers_of_the_optimizer_for_each_weight(
    make_spec: MakeSpec, laptop: Hardware
) -> None:
    plan = make_plan(make_spec(), num_actions=4, device="cpu", hardware=laptop)
    assert bytes_of(plan, "networks and optimizer") == (2 + 1 + 2) * 4 * 1_686_180


def bytes_of(plan: Plan, name: str) -> int:
    (item,) = (item for item in plan.items if item.name == name)
    return item.bytes


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("emulators", 16_000_000),
        ("evaluation", 5_000_000),
        ("worker processes", 270_000_000),
        ("evaluation workers", 180_000_000),
        ("logs", 5_000_000),
    ],
)
def test_part_takes_so_many_bytes_for_each_of_its_key(
    make_spec: MakeSpec, laptop: Hardware, name: str, expected: int
) -> None:
    spec = make_spec(
        "env.num_envs=16", "system.evaluation_envs=5", "system.workers=3", "system.evaluation_workers=2",
        "training.total_frames=40_000_000",
    )  # fmt: skip
    assert bytes_of(make_plan(spec, num_actions=4, device="cpu", hardware=laptop), name) == expected


def test_actors_take_a_process_each_and_the_messages_that_may_be_on_their_way(laptop: Hardware) -> None:
    spec = tiny_spec(
        "env.num_envs=8", "actors.mode=free_running", "actors.processes=2", "actors.fragment_steps=5",
        "actors.max_messages_in_flight=3", "actors.error_buffer_steps=100",
    )  # fmt: skip
    plan = make_plan(spec, num_actions=3, device="cpu", hardware=laptop)
    weights = network_bytes(network_shape(spec, 3))
    found = [bytes_of(plan, name) for name in ("actors", "evaluator", "messages of actors")]
    steps_of_a_message = 5 * (8 // 2)
    assert found == [
        2 * (350_000_000 + weights),
        350_000_000 + weights,
        2 * 3 * steps_of_a_message * (36 * 36 + 28),
    ]


def test_text_has_the_bytes_of_each_part_below_those_of_its_place(laptop: Hardware, gpu: Gpu) -> None:
    items = (
        Item(place="ram", name="emulators", bytes=2_000_000, key="env.num_envs"),
        Item(place="vram", name="replay", bytes=7_000_000_000, key="replay.capacity_steps"),
        Item(place="ram", name="Python and torch", bytes=3_000_000_000),
        Item(place="disk", name="logs", bytes=5_000_000, key="training.total_frames"),
        Item(place="disk", name="checkpoint being written", bytes=500_000_000, key="replay.capacity_steps"),
    )
    plan = Plan(device="cuda", items=items, total_frames=7_200_000, frames_per_second=1_000.0)
    text = plan_text(replace(plan, rate_basis="measured here"), replace(laptop, gpus=(gpu,)))
    assert [" ".join(line.split()) for line in text.splitlines()] == [
        "RAM 3.00 GB of 12.00 GB free",
        "emulators 2.0 MB env.num_envs",
        "Python and torch 3.00 GB",
        "disk 505.0 MB of 100.00 GB free",
        "logs 5.0 MB training.total_frames",
        "checkpoint being written 500.0 MB replay.capacity_steps",
        "GPU memory 7.00 GB of 20.00 GB free",
        "replay 7.00 GB replay.capacity_steps",
        "time, an estimate 2h 00m evaluations left out",
        "7,200,000 frames at 1,000 a second: measured here",
    ]


def test_target_that_is_the_online_network_is_not_counted_twice(
    make_spec: MakeSpec, laptop: Hardware
) -> None:
    two, one = (
        make_plan(make_spec(*keys), num_actions=6, device="cpu", hardware=laptop).bytes("ram")
        for keys in ((), ("learner.target_period_updates=1",))
    )
    assert two - one == network_bytes(network_shape(make_spec(), 6))


def test_averaged_target_is_a_second_network(make_spec: MakeSpec, laptop: Hardware) -> None:
    copied, averaged = (
        make_plan(make_spec(*keys), num_actions=6, device="cpu", hardware=laptop).bytes("ram")
        for keys in ((), ("learner.target_period_updates=1", "learner.target_rate=0.005"))
    )
    assert averaged == copied


def test_disk_holds_the_checkpoints_kept_and_one_being_written(make_spec: MakeSpec, laptop: Hardware) -> None:
    plan = make_plan(make_spec("checkpoint.keep_last=3"), num_actions=6, device="cpu", hardware=laptop)
    assert plan.bytes("disk") == pytest.approx(5 * (1_000_000 * 7084 / 30 + 4 * 6_748_824), rel=0.02)


def test_checkpoints_without_the_replay_take_the_networks_alone(
    make_spec: MakeSpec, laptop: Hardware
) -> None:
    plan = make_plan(make_spec("checkpoint.replay=false"), num_actions=6, device="cpu", hardware=laptop)
    assert plan.bytes("disk") == pytest.approx(3 * 4 * 6_748_824 + 6_250_000, rel=0.02)


def traced(tracer: Tracer, step: int, best_return: BestReturn | None) -> None:
    values = np.zeros(6, np.float32)
    tracer.record(0, action=step % 6, explored=False, values=values, best_return=best_return)


TRACED = {
    "c51": ("toggles.distribution=c51",),
    "qr_dqn": ("toggles.distribution=qr_dqn",),
    "none": (),
}


@pytest.mark.parametrize("kind", TRACED)
def test_decisions_of_an_evaluation_are_counted_as_they_are_held(
    make_spec: MakeSpec, laptop: Hardware, kind: str
) -> None:
    spec = make_spec(
        *TRACED[kind], "evaluation.full_episodes=1", "evaluation.light_episodes=1",
        "evaluation.max_episode_frames=400",
    )  # fmt: skip
    plan = make_plan(spec, num_actions=6, device="cpu", hardware=laptop)
    (item,) = (item for item in plan.items if item.key == "system.evaluation_video")
    width = {"c51": 51, "qr_dqn": 64, "none": 0}[kind]
    row = np.zeros(width, np.float32)
    tracer = Tracer()
    for step in range(100):
        traced(tracer, step, BestReturn(points=row, mass=row, atoms=kind == "c51") if width else None)
    trace = tracer.trace(0)
    held = trace.actions.nbytes + trace.explored.nbytes + trace.values.nbytes
    if trace.best_returns is not None:
        held += max(trace.best_returns.points.nbytes, trace.best_returns.mass.nbytes)
    assert item.bytes == held


def test_without_videos_no_decisions_are_held(make_spec: MakeSpec, laptop: Hardware) -> None:
    plan = make_plan(make_spec("system.evaluation_video=false"), num_actions=6, device="cpu", hardware=laptop)
    assert "system.evaluation_video" not in {item.key for item in plan.items}


def test_plan_that_fits_is_accepted(make_spec: MakeSpec, laptop: Hardware) -> None:
    check_fits(make_plan(make_spec(), num_actions=6, device="cpu", hardware=laptop), laptop)


def test_plan_that_takes_all_free_memory_is_accepted(make_spec: MakeSpec, laptop: Hardware) -> None:
    plan = make_plan(make_spec(), num_actions=6, device="cpu", hardware=laptop)
    check_fits(plan, replace(laptop, memory_available_bytes=plan.bytes("ram")))


def test_error_of_too_little_memory_has_need_free_memory_and_key(
    make_spec: MakeSpec, laptop: Hardware
) -> None:
    small = replace(laptop, memory_available_bytes=4 * GB)
    plan = make_plan(make_spec(), num_actions=6, device="cpu", hardware=small)
    with pytest.raises(
        UserError, match=r"needs 7\.59 GB of RAM, 4\.00 GB are free; lower replay\.capacity_steps"
    ):
        check_fits(plan, small)


def test_too_little_disk_names_the_number_of_checkpoints(make_spec: MakeSpec, laptop: Hardware) -> None:
    small = replace(laptop, disk_free_bytes=GB // 10)
    plan = make_plan(make_spec("checkpoint.keep_last=2"), num_actions=6, device="cpu", hardware=small)
    with pytest.raises(UserError, match=r"of disk, 100\.0 MB are free; lower checkpoint\.keep_last"):
        check_fits(plan, small)


def test_number_of_checkpoints_is_not_named_where_it_cannot_be_lower(
    make_spec: MakeSpec, laptop: Hardware
) -> None:
    small = replace(laptop, disk_free_bytes=GB // 10)
    plan = make_plan(make_spec(), num_actions=6, device="cpu", hardware=small)
    with pytest.raises(UserError, match=r"lower replay\.capacity_steps"):
        check_fits(plan, small)


def test_existing_checkpoints_are_subtracted_from_the_disk_space_of_a_resumed_run(
    make_spec: MakeSpec, laptop: Hardware
) -> None:
    plan = make_plan(make_spec(), num_actions=6, device="cpu", hardware=laptop)
    small = replace(laptop, disk_free_bytes=plan.bytes("disk") - GB // 10)
    check_fits(plan, small, held_disk_bytes=GB // 5)


def test_resumed_run_needs_space_for_the_checkpoint_being_written(
    make_spec: MakeSpec, laptop: Hardware
) -> None:
    small = replace(laptop, disk_free_bytes=1_000_000)
    plan = make_plan(make_spec(), num_actions=6, device="cpu", hardware=small)
    with pytest.raises(UserError, match=r"more of disk, 1\.0 MB are free; make room"):
        check_fits(plan, small, held_disk_bytes=1000 * GB)


def test_error_of_a_resumed_run_does_not_name_a_key(make_spec: MakeSpec, laptop: Hardware) -> None:
    small = replace(laptop, memory_available_bytes=4 * GB)
    plan = make_plan(make_spec(), num_actions=6, device="cpu", hardware=small)
    with pytest.raises(UserError, match=r"needs 7\.59 GB of RAM, 4\.00 GB are free; make room"):
        check_fits(plan, small, held_disk_bytes=0)


def test_error_of_too_many_environments_names_their_key(make_spec: MakeSpec, laptop: Hardware) -> None:
    spec = make_spec("env.num_envs=20000", "replay.capacity_steps=200000", "replay.prefill_steps=100000")
    plan = make_plan(spec, num_actions=6, device="cpu", hardware=laptop)
    with pytest.raises(UserError, match=r"lower env\.num_envs"):
        check_fits(plan, laptop)


LARGE_PARTS = {
    "hidden layer": (["network.hidden_units=1_000_000_000_000"], "lower network.hidden_units (networks"),
    "channels": (["network.kind=impala", "network.width=1000"], "lower network.width (networks"),
    "memory": (
        ["replay.kind=sequences", "network.memory=lstm", "network.memory_units=1_000_000",
         "env.stack_frames=1"],
        "lower network.memory_units (networks",
    ),
    "atoms": (
        ["toggles.distribution=c51", "distribution.num_atoms=10_000_000", "system.evaluation_video=false"],
        "lower distribution.num_atoms (networks",
    ),
    "evaluation workers": (["system.evaluation_workers=100000"], "lower system.evaluation_workers (eval"),
    "workers": (["system.workers=100000"], "lower system.workers (worker"),
    "recorded decisions": (
        ["system.evaluation_video=true", "evaluation.full_episodes=1_000_000"],
        "set system.evaluation_video = false (recorded",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", LARGE_PARTS, ids=str)
def test_error_names_the_key_of_the_part_that_is_too_large(
    make_spec: MakeSpec, laptop: Hardware, case: str
) -> None:
    overrides, remedy = LARGE_PARTS[case]
    plan = make_plan(make_spec(*overrides), num_actions=6, device="cpu", hardware=laptop)
    with pytest.raises(UserError) as refused:
        check_fits(plan, laptop)
    assert remedy in str(refused.value).splitlines()[0]


def test_checkpoints_that_are_too_large_by_their_weights_name_the_key_of_the_network(
    make_spec: MakeSpec, laptop: Hardware
) -> None:
    spec = make_spec("checkpoint.replay=false", "checkpoint.keep_last=1", "checkpoint.keep_best=1")
    small = replace(laptop, disk_free_bytes=10_000_000)
    plan = make_plan(spec, num_actions=6, device="cpu", hardware=small)
    with pytest.raises(UserError, match=r"of disk, 10\.0 MB are free; lower network\.hidden_units"):
        check_fits(plan, small)


@pytest.mark.parametrize(
    ("choice", "device", "needed", "place"),
    [
        ("auto", "cpu", 7 * GB, "cpu"),
        ("auto", "cuda:0", 7 * GB, "cuda:0"),
        ("auto", "cuda:0", 30 * GB, "cpu"),
        ("cuda", "cuda:0", 30 * GB, "cuda:0"),
        ("cpu", "cuda:0", 7 * GB, "cpu"),
    ],
)
def test_replay_is_on_the_chosen_device_or_where_it_fits(
    laptop: Hardware, gpu: Gpu, choice: str, device: str, needed: int, place: str
) -> None:
    assert planned_replay_device(choice, device, needed, replace(laptop, gpus=(gpu,))) == place


def test_replay_is_in_ram_if_the_learner_does_not_fit_next_to_it(
    make_spec: MakeSpec, laptop: Hardware, gpu: Gpu
) -> None:
    spec = make_spec('replay.device="auto"', "replay.capacity_steps=200_000")
    free = stored_bytes(spec) + CUDA_CONTEXT_BYTES + 1
    small = replace(laptop, gpus=(replace(gpu, memory_free_bytes=free),))
    plan = make_plan(spec, num_actions=6, device="cuda:0", hardware=small)
    assert {item.place for item in plan.items if item.name == "replay"} == {"ram"}
    check_fits(plan, small)


def test_gpu_memory_is_checked_too(make_spec: MakeSpec, laptop: Hardware, gpu: Gpu) -> None:
    small = replace(laptop, gpus=(replace(gpu, memory_free_bytes=2 * GB),))
    plan = make_plan(make_spec('replay.device="cuda"'), num_actions=6, device="cuda:0", hardware=small)
    with pytest.raises(UserError, match="GPU memory"):
        check_fits(plan, small)


def test_time_is_frames_over_rate(make_spec: MakeSpec, laptop: Hardware) -> None:
    plan = make_plan(make_spec(), num_actions=6, device="cpu", hardware=laptop)
    assert replace(plan, frames_per_second=1000.0).seconds == 50_000.0


def test_text_has_the_estimated_time_and_its_basis(make_spec: MakeSpec, laptop: Hardware) -> None:
    untimed = make_plan(make_spec(), num_actions=6, device="cpu", hardware=laptop)
    plan = replace(untimed, frames_per_second=1000.0, rate_basis="measured here over 2 s")
    assert "13h 53m" in plan_text(plan, laptop)
    assert "measured here over 2 s" in plan_text(plan, laptop)


def test_text_without_a_rate_has_no_time(make_spec: MakeSpec, laptop: Hardware) -> None:
    plan = make_plan(make_spec(), num_actions=6, device="cpu", hardware=laptop)
    assert "no rate was measured" in plan_text(plan, laptop)


def test_text_stays_within_80_columns(make_spec: MakeSpec, laptop: Hardware, gpu: Gpu) -> None:
    small = replace(laptop, memory_available_bytes=GB, gpus=(gpu,))
    spec = make_spec("system.workers=16", "checkpoint.keep_last=20")
    text = plan_text(make_plan(spec, num_actions=18, device="cuda:0", hardware=small), small)
    assert max(len(line) for line in text.splitlines()) <= 80


def test_replay_of_sequences_is_stated_within_five_percent(make_spec: MakeSpec, laptop: Hardware) -> None:
    spec = make_spec(
        "network.memory=lstm", "toggles.prioritized=true", "env.num_envs=4", "replay.capacity_steps=20_000",
        "replay.prefill_steps=10_000", "learner.threads=1",
    )  # fmt: skip
    info = GameInfo(game="pong", action_names=tuple("abc"), frame_shape=(84, 84), rom_md5="")
    replay = build_replay(spec, info, torch.device("cpu"))
    ring, states, tree = replay.ring, replay.states, replay.sampler.tree
    tensors = [
        ring.frame, ring.action, ring.reward, ring.discount, ring.start, ring.is_step, states.states,
        states.slot, *tree.sums, *tree.minima,
    ]  # fmt: skip
    held = sum(tensor.nbytes for tensor in tensors)
    held += replay._is_step.nbytes + replay._step_of_episode.nbytes
    plan = make_plan(spec, num_actions=3, device="cpu", hardware=laptop)
    stated = sum(item.bytes for item in plan.items if item.name in ("replay", "recurrent states"))
    assert stated == pytest.approx(held, rel=0.05)


def test_observations_of_r2d2_take_31_gigabytes_at_most(laptop: Hardware) -> None:
    spec = load_spec("r2d2", ["system.workers=2"]).spec
    plan = make_plan(spec, num_actions=18, device="cpu", hardware=laptop)
    stated = sum(item.bytes for item in plan.items if item.name in ("replay", "recurrent states"))
    assert 28e9 < stated <= 31e9


def test_replay_of_a_run_on_the_second_gpu_is_where_that_gpu_has_room(laptop: Hardware, gpu: Gpu) -> None:
    full = replace(gpu, memory_free_bytes=0)
    first_is_full, second_is_full = (replace(laptop, gpus=gpus) for gpus in ((full, gpu), (gpu, full)))
    found = [
        planned_replay_device("auto", "cuda:1", 7 * GB, each) for each in (first_is_full, second_is_full)
    ]
    assert found == ["cuda:1", "cpu"]


def test_run_on_the_second_gpu_fits_if_that_gpu_has_room(
    make_spec: MakeSpec, laptop: Hardware, gpu: Gpu
) -> None:
    two = replace(laptop, gpus=(replace(gpu, memory_free_bytes=0), gpu))
    check_fits(make_plan(make_spec(), num_actions=6, device="cuda:1", hardware=two), two)
    with pytest.raises(UserError, match=r"of GPU memory, 0\.0 MB are free"):
        check_fits(make_plan(make_spec(), num_actions=6, device="cuda:0", hardware=two), two)


def test_existing_checkpoints_are_not_subtracted_from_the_memory_of_a_resumed_run(
    make_spec: MakeSpec, laptop: Hardware
) -> None:
    small = replace(laptop, memory_available_bytes=7 * GB)
    plan = make_plan(make_spec(), num_actions=6, device="cpu", hardware=small)
    with pytest.raises(UserError, match=r"needs 7\.59 GB of RAM, 7\.00 GB are free"):
        check_fits(plan, small, held_disk_bytes=1000 * GB)


def test_text_says_of_each_place_whether_the_run_fits(make_spec: MakeSpec, laptop: Hardware) -> None:
    small = replace(laptop, memory_available_bytes=4 * GB)
    text = plan_text(make_plan(make_spec(), num_actions=6, device="cpu", hardware=small), small)
    places = [" ".join(line.split()) for line in text.splitlines() if line.startswith(("RAM", "disk"))]
    assert places == ["RAM 7.59 GB of 4.00 GB free: too little", "disk 795.6 MB of 100.00 GB free"]
