"""Train a spec for some seconds and print its emulator frames/s as JSON; other benchmarks run this."""

import argparse
import json
from contextlib import closing
from pathlib import Path

import torch

from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.schema import Spec
from atari_dqn.train.assembly import assemble
from atari_dqn.train.rate import timed, warm_up

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
        warm_up(training, updates=warm_up_updates)
        return timed(training, seconds).frames_per_second


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
