"""What one update of each algorithm costs compared with plain DQN's: Pong's network, batch 32, fp32.

Agents take turns, a block of updates each, on the same minibatch: in goes the minibatch, out come errors for
the replay. Acting, emulation and sampling are left out.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

from atari_dqn.agent.learner import Learner
from atari_dqn.assembly.parts import build_learner
from atari_dqn.machine.allocator import keep_freed_memory
from atari_dqn.minibatch import Minibatch
from atari_dqn.types import GameInfo
from hardware import circumstances
from spec_here import load_spec_here

import torch

SPEC = Path(__file__).parents[1] / "runs/pong_trackA.toml"
CPU = torch.device("cpu")
PONG = GameInfo(game="pong", action_names=tuple("abcdef"), frame_shape=(84, 84), rom_md5="")
ADAM = ("optimizer.kind=adam", "learner.reduction=mean")
RAINBOW = (
    "toggles.double=true", "toggles.dueling=true", "toggles.prioritized=true", "toggles.n_step=3",
    "toggles.noisy=true", "toggles.distribution=c51",
)  # fmt: skip
COMPILE = "learner.compile=true"
FRACTIONS = ("distribution.num_fractions=8", "distribution.num_target_fractions=8")
IQN = ("toggles.distribution=iqn", *FRACTIONS)
DRQ = ("toggles.double=true", "toggles.dueling=true", "toggles.random_shifts=true")
AGENTS: dict[str, tuple[str, ...]] = {
    "dqn": (),
    "double": ("toggles.double=true",),
    "dueling": ("toggles.dueling=true",),
    "noisy": ("toggles.noisy=true",),
    "c51": ("toggles.distribution=c51",),
    "qr_dqn": ("toggles.distribution=qr_dqn",),
    "iqn 8/8/8": (*IQN, "distribution.num_policy_fractions=8"),
    "iqn 8/8/32": (*IQN, "distribution.num_policy_fractions=32"),
    "iqn 64/64/32": ("toggles.distribution=iqn",),
    "m_dqn": ("toggles.munchausen=true",),
    "m_iqn 8/8/8": (*IQN, "distribution.num_policy_fractions=8", "toggles.munchausen=true"),
    "rainbow": RAINBOW,
    "impala": ("network.kind=impala",),
    "der": (*RAINBOW, "network.kind=data_efficient"),
    "drq_eps": (*DRQ, "network.kind=dopamine", "learner.target_period_updates=1"),
    "dqn, compiled": (COMPILE,),
    "rainbow, compiled": (*RAINBOW, COMPILE),
    "der, compiled": (*RAINBOW, "network.kind=data_efficient", COMPILE),
    "dqn, rmsprop": ("optimizer.kind=deepmind_rmsprop", "learner.reduction=sum"),
}
"""By name, over Track A with Adam, which all but the last have."""


def make_batch(size: int = 32) -> Minibatch:
    """Return random transitions, with importance weights of 1."""
    generator = torch.Generator().manual_seed(0)
    frames = torch.randint(0, 256, (2, size, 4, 84, 84), generator=generator, dtype=torch.uint8)
    return Minibatch(
        s_tm1=frames[0],
        a_tm1=torch.arange(size) % PONG.num_actions,
        r_t=torch.randn(size, generator=generator).clamp(-1, 1),
        discount_t=torch.full((size,), 0.99),
        s_t=frames[1],
        weight=torch.ones(size),
        index=torch.arange(size),
    )


def make_learner(overrides: tuple[str, ...]) -> Learner:
    """Return an agent's learner for Pong."""
    return build_learner(load_spec_here(SPEC, [*ADAM, *overrides]).spec, PONG, CPU)


def milliseconds(learner: Learner, batch: Minibatch, updates: int) -> float:
    """Return the time of one update."""
    began = time.perf_counter()
    for _ in range(updates):
        learner.update(batch)
    return (time.perf_counter() - began) / updates * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--updates", type=int, default=10, help="of each agent in a round")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--agents", nargs="+", default=list(AGENTS), choices=list(AGENTS))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    keep_freed_memory()
    batch, names = make_batch(), dict.fromkeys(["dqn", *options.agents])
    learners = {name: make_learner(AGENTS[name]) for name in names}
    for learner in learners.values():
        milliseconds(learner, batch, 2)  # oneDNN prepares each shape once
    rounds = [
        {name: milliseconds(learner, batch, options.updates) for name, learner in learners.items()}
        for _ in range(options.rounds)
    ]
    report = {
        **circumstances(),
        "settings": {"batch": 32, "updates": options.updates, "threads": options.threads},
        "rounds_milliseconds": rounds,
        "median_milliseconds": {name: statistics.median(row[name] for row in rounds) for name in names},
        "median_ratio_to_dqn": {
            name: statistics.median(row[name] / row["dqn"] for row in rounds) for name in names
        },
    }
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps({name: report[name] for name in report if name.startswith("median")}, indent=2))


if __name__ == "__main__":
    main()
