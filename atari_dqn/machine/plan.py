"""Predict the memory, disk space and time of a run, and refuse a run that does not fit the machine."""

from __future__ import annotations

from dataclasses import dataclass

from atari_dqn.clock import frames_to_steps
from atari_dqn.errors import UserError
from atari_dqn.formatting import size
from atari_dqn.machine.actors import actor_items
from atari_dqn.machine.devices import cuda_index, planned_replay_device
from atari_dqn.machine.hardware import Hardware
from atari_dqn.machine.items import Item, Place
from atari_dqn.machine.key_of_weights import key_of_weights
from atari_dqn.machine.learner_items import (
    NETWORKS,
    OPTIMIZER_BUFFERS,
    bytes_on_gpu,
    learner_items,
    network_shape,
    replay_items,
    state_items,
    stored_bytes,
)
from atari_dqn.machine.redo_items import redo_items
from atari_dqn.machine.sizes import (
    CUDA_CONTEXT_BYTES,
    CUDA_PROCESS_BYTES,
    ENVIRONMENT_BYTES,
    LOG_BYTES_PER_STEP,
    PROCESS_BYTES,
    SAVED_REPLAY_SHARE,
    WORKER_BYTES,
    network_bytes,
    trace_bytes,
)
from atari_dqn.spec.constraints import decided
from atari_dqn.spec.keys import KEYS
from atari_dqn.spec.schema import Spec

PLACES: dict[Place, str] = {"ram": "RAM", "vram": "GPU memory", "disk": "disk"}
"""Display name of each place."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The predicted memory, disk space and time of a run."""

    device: str
    items: tuple[Item, ...]
    total_frames: int
    frames_per_second: float | None = None
    """Emulator frames per second, without evaluations; None if it was not measured."""
    rate_basis: str = ""
    """The measurement behind `frames_per_second`, for display."""

    def bytes(self, place: Place) -> int:
        """Compute the bytes that the run needs in a place."""
        return sum(item.bytes for item in self.items if item.place == place)

    @property
    def seconds(self) -> float | None:
        """Training time at `frames_per_second`; None if that is not known."""
        return self.total_frames / self.frames_per_second if self.frames_per_second else None


def make_plan(
    spec: Spec, *, num_actions: int, device: str, hardware: Hardware, actors_here: bool = True
) -> Plan:
    """Predict what a run of `spec` on `device` (`cpu`, `cuda` or `cuda:N`) needs of this machine.

    `actors_here`: whether its actors, if it has any, are processes of this machine.
    """
    learner: Place = "ram" if device == "cpu" else "vram"
    needed = bytes_on_gpu(spec, num_actions)
    replay_on = planned_replay_device(spec.replay.device, device, needed, hardware)
    replay: Place = "ram" if replay_on == "cpu" else "vram"
    network = network_shape(spec, num_actions)
    weights = network_bytes(network)
    items = (
        *replay_items(spec, replay),
        *learner_items(spec, num_actions, learner),
        *redo_items(spec, network, replay),
        *_process_items(spec, device),
        *actor_items(spec, weights, actors_here=actors_here),
        *_trace_items(spec, num_actions),
        *_disk_items(spec, weights, key_of_weights(spec, network)),
    )
    return Plan(device=device, items=items, total_frames=spec.training.total_frames)


def free_bytes(plan: Plan, hardware: Hardware) -> dict[Place, int]:
    """Return the free bytes of each place that the plan uses."""
    room: dict[Place, int] = {"ram": hardware.memory_available_bytes, "disk": hardware.disk_free_bytes}
    if plan.device != "cpu":
        room["vram"] = hardware.gpus[cuda_index(plan.device)].memory_free_bytes
    return room


def check_fits(plan: Plan, hardware: Hardware, *, held_disk_bytes: int | None = None) -> None:
    """Refuse what this machine cannot hold: `UserError` with the need, the room, and the remedy.

    `held_disk_bytes`: what the checkpoints of a run that has begun take already; None for a new run. A run
    that has begun keeps its spec, so that no key can be lowered.
    """
    problems = [
        _problem(plan, place, free, held_disk_bytes)
        for place, free in free_bytes(plan, hardware).items()
        if _needed_bytes(plan, place, held_disk_bytes or 0) > free
    ]
    if problems:
        raise UserError("\n".join(problems))


def _needed_bytes(plan: Plan, place: Place, held_disk_bytes: int) -> int:
    """Compute the bytes that a run needs in addition to those of its existing checkpoints."""
    kept = sum(item.bytes for item in plan.items if item.is_kept)
    return plan.bytes(place) - (min(held_disk_bytes, kept) if place == "disk" else 0)


def _problem(plan: Plan, place: Place, free: int, held_disk_bytes: int | None) -> str:
    needed = size(_needed_bytes(plan, place, held_disk_bytes or 0))
    if held_disk_bytes is not None:
        more = " more" if place == "disk" else ""
        return (
            f"the run needs {needed}{more} of {PLACES[place]}, {size(free)} are free; "
            "make room, or resume it on another machine: a run that has begun keeps its spec"
        )
    items = [item for item in plan.items if item.place == place and item.key]
    largest = max(items, key=lambda item: item.bytes)
    remedy = f"set {largest.key} = false" if KEYS[largest.key].kind is bool else f"lower {largest.key}"
    return (
        f"the run needs {needed} of {PLACES[place]}, "
        f"{size(free)} are free; {remedy} ({largest.name}: {size(largest.bytes)})"
    )


def _key_of_checkpoints(spec: Spec, key_of_one: str) -> str:
    """Return the key to lower if the checkpoints do not fit on the disk; `key_of_one` makes each smaller."""
    if spec.checkpoint.keep_last > 1:
        return "checkpoint.keep_last"
    return "checkpoint.keep_best" if spec.checkpoint.keep_best > 1 else key_of_one


def _process_items(spec: Spec, device: str) -> tuple[Item, ...]:
    emulators = spec.env.num_envs * ENVIRONMENT_BYTES
    evaluation = spec.system.evaluation_envs * ENVIRONMENT_BYTES
    workers = decided(spec.system.workers) * WORKER_BYTES
    evaluators = spec.system.evaluation_workers * WORKER_BYTES
    base = PROCESS_BYTES if device == "cpu" else CUDA_PROCESS_BYTES
    items = (
        Item(place="ram", name="emulators", bytes=emulators, key="env.num_envs"),
        Item(place="ram", name="evaluation", bytes=evaluation, key="system.evaluation_envs"),
        Item(place="ram", name="worker processes", bytes=workers, key="system.workers"),
        Item(place="ram", name="evaluation workers", bytes=evaluators, key="system.evaluation_workers"),
        Item(place="ram", name="Python and torch", bytes=base),
    )
    context = Item(place="vram", name="CUDA itself", bytes=0 if device == "cpu" else CUDA_CONTEXT_BYTES)
    return tuple(item for item in (*items, context) if item.bytes)


def _trace_items(spec: Spec, num_actions: int) -> tuple[Item, ...]:
    """Return the item for the recorded decisions of a full evaluation of episodes of maximum length."""
    if not spec.system.evaluation_video:
        return ()
    steps = frames_to_steps(spec.evaluation.max_episode_frames, frame_skip=spec.env.frame_skip)
    traced = trace_bytes(
        steps=spec.evaluation.full_episodes * steps,
        num_actions=num_actions,
        num_atoms=spec.distribution.num_atoms or 0,
        num_quantiles=spec.distribution.num_quantiles or spec.distribution.num_policy_fractions or 0,
    )
    return (Item(place="ram", name="recorded decisions", bytes=traced, key="system.evaluation_video"),)


def _disk_items(spec: Spec, weights_bytes: int, weights_key: str) -> tuple[Item, ...]:
    """Return the items for the files of a run. `weights_key`: the key that makes the network smaller.

    A checkpoint contains the compressed replay, and shares unchanged parts with older checkpoints. The plan
    assumes that it shares none, as is the case if the whole replay was replaced in between. Older checkpoints
    are deleted only after a new one has been written.
    """
    replay = 0
    if spec.checkpoint.replay:
        states = sum(item.bytes for item in state_items(spec, "ram"))  # saved as they are
        replay = round(stored_bytes(spec) * SAVED_REPLAY_SHARE) + states
    weights = weights_bytes * (NETWORKS + OPTIMIZER_BUFFERS)
    checkpoint = replay + weights
    kept = spec.checkpoint.keep_last + spec.checkpoint.keep_best
    key_of_one = "replay.capacity_steps" if replay > weights else weights_key
    key = _key_of_checkpoints(spec, key_of_one)
    steps = frames_to_steps(spec.training.total_frames, frame_skip=spec.env.frame_skip)
    return (
        Item(place="disk", name=f"{kept} checkpoints kept", bytes=kept * checkpoint, key=key, is_kept=True),
        Item(place="disk", name="checkpoint being written", bytes=checkpoint, key=key_of_one),
        Item(place="disk", name="logs", bytes=round(steps * LOG_BYTES_PER_STEP), key="training.total_frames"),
    )
