"""What settings and toggles change in learning per frame, on the toy game.

Settings: bf16 beside fp32, more lanes beside fewer. Toggles, 8 lanes of 36 × 36 pixels: each alone, IQN
with Munchausen, and Rainbow, beside plain DQN with Adam and a batch's mean; 50 quantiles, 8 fractions of
each kind, shifts of one pixel, and no ε where layers are noisy. There is an update for every four agent
steps everywhere. Scores are means of 20 games played greedily, after 6,000, 12,000 and 24,000 frames; of
ten balls none is missed at 10, and chance is about −2.
"""

from __future__ import annotations

import argparse
import json
import statistics
from contextlib import closing
from pathlib import Path

import torch
from hardware import circumstances

from atari_dqn.evaluate import evaluate
from atari_dqn.scores import EvaluationScore
from atari_dqn.spec.loader import load_spec
from atari_dqn.train.assembly import assemble
from atari_dqn.train.loop import q_learning

SPEC = Path(__file__).parents[1] / "runs/catch_smoke.toml"
BASE = (
    "env.max_episode_frames=1000", "env.noop_max_frames=0",
    "exploration.epsilon_decay_frames=16_000", "exploration.epsilon_end=0.05",
    "replay.capacity_steps=8_000", "replay.prefill_steps=400",
    "learner.batch_size=32", "learner.target_period_updates=100", "learner.reduction=mean",
    "optimizer.kind=adam", "optimizer.learning_rate=0.001", "network.init=he_uniform",
    "evaluation.epsilon=0.0", "evaluation.max_episode_frames=1000", "training.total_frames=24_000",
)  # fmt: skip
SETTINGS = {
    "1 lane, fp32": ("env.lanes=1",),
    "8 lanes, fp32": ("env.lanes=8",),
    "8 lanes, bf16": ("env.lanes=8", "learner.precision=bf16"),
    "16 lanes, fp32": ("env.lanes=16",),
    "64 lanes, fp32": ("env.lanes=64",),
    "128 lanes, fp32": ("env.lanes=128",),
}
PLAIN = ("env.lanes=8", "env.screen_size_pixels=36")
NOISY = (*PLAIN, "toggles.noisy=true", "exploration.epsilon_end=0.0")
IQN = (
    *PLAIN, "toggles.distribution=iqn", "distribution.num_fractions=8", "distribution.num_target_fractions=8",
    "distribution.num_policy_fractions=8",
)  # fmt: skip
RAINBOW = (
    *NOISY, "toggles.double=true", "toggles.dueling=true", "toggles.prioritized=true", "toggles.n_step=3",
    "toggles.distribution=c51",
)  # fmt: skip
TOGGLES = {
    "plain DQN": PLAIN,
    "double": (*PLAIN, "toggles.double=true"),
    "dueling": (*PLAIN, "toggles.dueling=true"),
    "prioritized": (*PLAIN, "toggles.prioritized=true"),
    "n_step": (*PLAIN, "toggles.n_step=3"),
    "noisy": NOISY,
    "c51": (*PLAIN, "toggles.distribution=c51"),
    "qr_dqn": (*PLAIN, "toggles.distribution=qr_dqn", "distribution.num_quantiles=50"),
    "iqn": IQN,
    "munchausen": (*PLAIN, "toggles.munchausen=true"),
    "munchausen, iqn": (*IQN, "toggles.munchausen=true"),
    "random_shifts": (*PLAIN, "toggles.random_shifts=true", "learner.shift_pixels=1"),
    "Rainbow": RAINBOW,
}
GROUPS = {"settings": SETTINGS, "toggles": TOGGLES}
AT_FRAMES = (6_000, 12_000, 24_000)


def scores(overrides: tuple[str, ...], seed: int) -> dict[int, float]:
    """Return the score at each of `AT_FRAMES`."""
    spec = load_spec(SPEC, [*BASE, *overrides, f"seed={seed}"]).spec
    found: dict[int, float] = {}
    with closing(assemble(spec, torch.device("cpu"))) as training:
        training.begin()
        for _ in q_learning(training):
            due = [at for at in AT_FRAMES if at not in found and training.clock.env_frames >= at]
            for at in due:
                found[at] = EvaluationScore.of(
                    evaluate(training.learner.online, spec, episodes=20)
                ).mean_return
    return found


def summary(rows: list[dict[int, float]]) -> dict[str, dict[str, float]]:
    """Return mean and standard error over seeds at each number of frames."""
    return {
        str(at): {
            "mean": statistics.mean(row[at] for row in rows),
            "standard_error": statistics.stdev(row[at] for row in rows) / len(rows) ** 0.5,
        }
        for at in AT_FRAMES
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--group", choices=list(GROUPS), default="settings")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error("--seeds: one seed has no standard error")
    torch.set_num_threads(options.threads)
    group = GROUPS[options.group]
    rows: dict[str, list[dict[int, float]]] = {name: [] for name in group}
    for seed in range(1, options.seeds + 1):
        for name, overrides in group.items():
            rows[name].append(scores(overrides, seed))
            print(f"seed {seed}, {name}: {rows[name][-1]}", flush=True)
    report = {
        **circumstances(),
        "settings": {
            "seeds": options.seeds,
            "threads": options.threads,
            "overrides": {name: (*BASE, *overrides) for name, overrides in group.items()},
        },
        "scores": rows,
        "summary": {name: summary(found) for name, found in rows.items()},
    }
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report["summary"], indent=2))


if __name__ == "__main__":
    main()
