"""What memory costs: sampling of sequences, an update over plain PyTorch calls, and the replay's bytes.

sampling   64 sequences of R2D2, 120 steps with the burn-in, from a full replay of 100,000 steps: sampling,
           gathering and new priorities, as a share of an update on these sequences
update     a whole update of `r2d2_small`, sampling and priorities included, over the gradient step of the
           same network in plain PyTorch calls on the same sequences; both take turns
bytes      the resident bytes of that replay over those that `--plan` predicts, and what it predicts for
           4,000,000 steps

Times are processor seconds of one thread, which other programs on the machine change least.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from atari_dqn.assembly.acceleration import make_backend
from atari_dqn.assembly.parts import build_learner
from atari_dqn.assembly.replay_parts import build_replay
from atari_dqn.machine.allocator import keep_freed_memory
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.machine.plan import make_plan
from atari_dqn.replay.sequences import SequenceReplay
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo, StepBatch
from hardware import circumstances
from plain_r2d2 import PlainUpdates
from spec_here import load_spec_here

import numpy as np
import psutil
import torch

RUNS = Path(__file__).parents[1] / "runs"
CPU = torch.device("cpu")
ACTIONS = tuple("abcdefghijklmnopqr")
ENVS = 8
CAPACITY_STEPS = 100_000
WARM_UP_STEPS = 4_000
EPISODE_ROWS = 900
REPLAY_ITEMS = ("replay", "recurrent states")


def spec_of(name: str, capacity_steps: int) -> Spec:
    """Return a spec with a small replay of few environments, of which more are a detail of the filling."""
    keys = [f"env.num_envs={ENVS}", f"replay.capacity_steps={capacity_steps}", "system.workers=0"]
    prefill = ["replay.prefill_steps=1000", "training.total_frames=1_000_000"]
    return load_spec_here(RUNS / f"{name}.toml", [*keys, *prefill]).spec


def game(spec: Spec) -> GameInfo:
    """Return the game, as networks are made for it."""
    actions = ACTIONS if spec.env.full_action_set else ACTIONS[:6]
    size = spec.env.screen_size_pixels
    return GameInfo(game="pong", action_names=actions, frame_shape=(size, size), rom_md5="")


def filled(spec: Spec, width: int) -> SequenceReplay:
    """Return a replay with noise in every row, which no page can be shared for."""
    replay = build_replay(spec, game(spec), CPU, make_backend(CPU))
    assert isinstance(replay, SequenceReplay)
    generator, actions = np.random.default_rng(0), np.zeros(ENVS, dtype=np.int64)
    state, discount = torch.randn(ENVS, width) * 0.1, np.ones(ENVS)
    replay.begin(noise(generator, 0, spec))
    for row in range(1, replay.ring.rows + 1):
        replay.append(actions, discount, noise(generator, row, spec), state)
    return replay


def noise(generator: np.random.Generator, row: int, spec: Spec) -> StepBatch:
    none, size = np.zeros(ENVS, dtype=bool), spec.env.screen_size_pixels
    return StepBatch(
        frame=generator.integers(256, size=(ENVS, size, size), dtype=np.uint8),
        reward=generator.integers(-1, 2, size=ENVS).astype(float),
        terminated=none,
        truncated=none,
        life_lost=none,
        first=np.full(ENVS, row % EPISODE_ROWS == 0),
    )


def seconds(work: Callable[[], Any]) -> float:
    """Return the processor time of a call."""
    began = time.process_time()
    work()
    return time.process_time() - began


def measure_bytes() -> tuple[dict[str, float], SequenceReplay, Spec]:
    """Fill R2D2's replay and compare its memory with the plan; return it too."""
    width = 2 * 512
    filled(spec_of("r2d2", WARM_UP_STEPS), width)  # loads what is loaded once
    gc.collect()
    spec, before = spec_of("r2d2", CAPACITY_STEPS), psutil.Process().memory_info().rss
    replay = filled(spec, width)
    resident = psutil.Process().memory_info().rss - before
    predicted, whole = planned(spec), planned(load_spec_here(RUNS / "r2d2.toml").spec)
    found = {
        "capacity_steps": CAPACITY_STEPS,
        "resident_bytes": resident,
        "predicted_bytes": predicted,
        "predicted_over_resident": predicted / resident,
        "predicted_bytes_of_4_million": whole,
    }
    return found, replay, spec


def planned(spec: Spec) -> int:
    """Return the bytes of the replay and its recurrent states by `--plan`."""
    plan = make_plan(spec, num_actions=len(ACTIONS), device="cpu", hardware=find_hardware(Path.cwd()))
    return sum(item.bytes for item in plan.items if item.name in REPLAY_ITEMS)


def measure_sampling(replay: SequenceReplay, spec: Spec, rounds: int, updates: int) -> dict[str, Any]:
    """Measure sampling, and R2D2's update on what was sampled."""

    def sample() -> None:
        replay.prepare(0)
        batch = replay.sample()
        replay.update_priorities(batch, torch.rand(len(batch.index)))

    sample()
    sampling = [seconds(sample) for _ in range(rounds)]
    learner, batch = build_learner(spec, game(spec), CPU, make_backend(CPU)), replay.sample()
    learner.update(batch)
    learning = [seconds(lambda: learner.update(batch)) for _ in range(updates)]
    sampled, learned = statistics.median(sampling), statistics.median(learning)
    return {
        "sequences": len(batch.index),
        "steps": int(batch.last_action.shape[1]) - 1,
        "sampling_seconds": sampling,
        "update_seconds": learning,
        "sampling_share_of_update": sampled / (sampled + learned),
    }


def measure_update(rounds: int) -> dict[str, Any]:
    """Measure a whole update of `r2d2_small` and its plain counterpart in turns."""
    spec = spec_of("r2d2_small", 20_000)
    replay = filled(spec, 2 * 256)
    learner = build_learner(spec, game(spec), CPU, make_backend(CPU))
    plain = PlainUpdates(spec, game(spec).num_actions, learner.online)

    def ours() -> torch.Tensor:
        replay.prepare(0)
        batch = replay.sample()
        update = learner.update(batch)
        replay.update_priorities(batch, update.priorities)
        return update.metrics["loss"]

    replay.prepare(0)
    batch = replay.sample()
    losses = plain.update(batch)[0].item(), learner.update(batch).metrics["loss"].item()
    assert abs(losses[0] - losses[1]) <= 1e-3 * abs(losses[0]), f"other losses: {losses}"
    ours()
    times = [{"ours": seconds(ours), "plain": seconds(lambda: plain.update(batch))} for _ in range(rounds)]
    return {
        "rounds_seconds": times,
        "median_ratio_to_plain": statistics.median(row["ours"] / row["plain"] for row in times),
        "first_losses": losses,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--updates", type=int, default=2, help="of R2D2 itself, after one that is left out")
    options = parser.parse_args()
    torch.set_num_threads(1)
    keep_freed_memory()
    found, replay, spec = measure_bytes()  # first: it may not reuse memory that others freed
    figures = {
        "bytes": found,
        "sampling": measure_sampling(replay, spec, options.rounds, options.updates),
        "update": measure_update(options.rounds),
    }
    report = {**circumstances(), "settings": {"threads": 1}, **figures}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
