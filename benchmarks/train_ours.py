"""Train a spec for some seconds and print its emulator frames/s as JSON; other benchmarks run this.

`auto` in the spec is resolved as on a processor whose largest instruction set is that of `ATARI_DQN_ISA`.
"""

import argparse
import json
import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import atari_dqn
from atari_dqn.assembly.acceleration import has_kernels
from atari_dqn.fast.cpu.library import kernels_for, kernels_here
from atari_dqn.machine.automatic import Machine, resolve_auto
from atari_dqn.machine.hardware import Hardware, find_hardware
from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.schema import Spec
from atari_dqn.train.build import assemble_without_actors
from atari_dqn.train.rate import Rate, timed, warm_up
from instruction_sets import OVERRIDE, flags_within
from worker_options import software, worker_parser

import torch


def benchmark_spec(options: argparse.Namespace) -> Spec:
    """Return the spec with the common settings; a noisy network explores by itself and has no ε."""
    overrides = {
        "game": f'"{options.game}"',
        "env.num_envs": options.envs,
        "replay.capacity_steps": options.capacity_steps,
        "replay.prefill_steps": options.prefill_steps,
        "learner.target_period_updates": options.target_period_updates,
        "training.total_frames": 10**9,
        "learner.threads": options.threads,
    }
    if not load_spec(options.spec).spec.toggles.noisy:
        overrides |= dict.fromkeys(("exploration.epsilon_start", "exploration.epsilon_end"), options.epsilon)
    texts = [f"{key}={value}" for key, value in overrides.items()]
    resolved = load_spec(options.spec, [*texts, *options.set])
    hardware = hardware_within(os.environ.get(OVERRIDE))
    return resolve_auto(resolved, Machine(device="cpu", hardware=hardware, has_kernels=has_kernels))[0].spec


def hardware_within(isa: str | None) -> Hardware:
    """Return this machine's hardware, without the processor's flags beyond an instruction set."""
    hardware = find_hardware(Path.cwd())
    if isa is None or hardware.cpu_flags is None:
        return hardware
    return replace(hardware, cpu_flags=flags_within(isa, hardware.cpu_flags))


def rate(spec: Spec, *, warm_up_updates: int, seconds: float) -> Rate:
    """Return the speed after the prefill and `warm_up_updates` more updates, and where the time went."""
    with closing(assemble_without_actors(spec, torch.device("cpu"))) as training:
        warm_up(training, updates=warm_up_updates)
        return timed(training, seconds)


def our_software(precision: str) -> dict[str, Any]:
    """List torch and its instruction set, our kernels in use, and how threads wait."""
    return {
        **software(),
        "kernels": kernels_for(precision, kernels_here()),
        "openmp": atari_dqn.wait_variables(),
    }


def main() -> None:
    parser = worker_parser(__doc__)
    parser.add_argument("--spec", type=Path, required=True)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as `dqn train`")
    options = parser.parse_args()
    spec = benchmark_spec(options)
    found = rate(spec, warm_up_updates=options.warm_up_updates, seconds=options.seconds)
    print(
        json.dumps(
            {
                "frames_per_second": found.frames_per_second,
                "updates_per_second": found.updates_per_second,
                "shares": found.shares,
                "spec": options.spec.name,
                "envs": spec.env.num_envs,
                "workers": spec.system.workers,
                "precision": spec.learner.precision,
                **our_software(spec.learner.precision),
            }
        )
    )


if __name__ == "__main__":
    main()
