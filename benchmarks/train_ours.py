"""Train a spec for some seconds and print its emulator frames/s as JSON; other benchmarks run this."""

import argparse
import json
import time
from collections import deque
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import torch

from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.schema import Spec
from atari_dqn.train.assembly import assemble
from atari_dqn.train.loop import Tick, q_learning
from atari_dqn.train.training import Training

TRACK_A = Path(__file__).parents[1] / "runs" / "pong_trackA.toml"


def benchmark_spec(options: argparse.Namespace) -> Spec:
    overrides = {
        "game": f'"{options.game}"',
        "exploration.epsilon_start": options.epsilon,
        "exploration.epsilon_end": options.epsilon,
        "replay.capacity_steps": options.capacity_steps,
        "replay.prefill_steps": options.prefill_steps,
        "learner.target_period_updates": options.target_period_updates,
        "training.total_frames": 10**9,
    }
    return load_spec(options.spec, [f"{key}={value}" for key, value in overrides.items()]).spec


def frames_per_second(spec: Spec, *, warm_up_updates: int, seconds: float) -> float:
    """Return the speed after the prefill and `warm_up_updates` more updates."""
    with closing(assemble(spec, torch.device("cpu"))) as training:
        clock = training.clock
        training.begin()
        ticks = reported(training)
        while clock.updates < warm_up_updates:
            next(ticks)
        frames, began = clock.env_frames, time.perf_counter()
        while (elapsed := time.perf_counter() - began) < seconds:
            next(ticks)
        return (clock.env_frames - frames) / elapsed


def reported(training: Training) -> Iterator[Tick]:
    """Yield every tick once its rows are made, as `dqn train` does: reporting is part of training."""
    for tick in q_learning(training):
        deque(training.reporter.rows(tick, replay_transitions=training.replay.num_transitions), maxlen=0)
        yield tick


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", type=Path, default=TRACK_A)
    parser.add_argument("--game", required=True, help="ROM id, snake case")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--capacity-steps", type=int, required=True)
    parser.add_argument("--prefill-steps", type=int, required=True)
    parser.add_argument("--target-period-updates", type=int, required=True)
    parser.add_argument("--warm-up-updates", type=int, required=True)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    speed = frames_per_second(
        benchmark_spec(options), warm_up_updates=options.warm_up_updates, seconds=options.seconds
    )
    print(json.dumps({"frames_per_second": speed, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
