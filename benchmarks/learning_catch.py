"""What settings and toggles change in learning per frame, on the toy game.

Settings: bf16 and fp32, more environments and fewer. Toggles, 8 environments of 36 × 36 pixels: each
alone, IQN with Munchausen, and Rainbow, compared with plain DQN with Adam and a batch's mean; 50 quantiles, 8
fractions of each kind, shifts of one pixel, and no ε where layers are noisy. There is an update for every
four agent steps everywhere. Scores are means of 20 games played greedily, after 6,000, 12,000 and 24,000
frames; of ten balls none is missed at 10, and chance is about −2.
"""

from __future__ import annotations

import argparse
import json
import statistics
from contextlib import closing
from pathlib import Path

from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.run.scores import EvaluationScore
from atari_dqn.train.build import assemble_without_actors
from atari_dqn.train.loop import q_learning
from hardware import circumstances
from spec_here import load_spec_here
from toy_game import LEARNING, TOGGLES

import torch

SPEC = Path(__file__).parents[1] / "runs/catch_smoke.toml"
SETTINGS = {
    "1 environment, fp32": ("env.num_envs=1",),
    "8 environments, fp32": ("env.num_envs=8",),
    "8 environments, bf16": ("env.num_envs=8", "learner.precision=bf16"),
    "16 environments, fp32": ("env.num_envs=16",),
    "64 environments, fp32": ("env.num_envs=64",),
    "128 environments, fp32": ("env.num_envs=128",),
}
SMALL = ("env.num_envs=8", "env.screen_size_pixels=36")
GROUPS = {
    "settings": SETTINGS,
    "toggles": {name: (*SMALL, *overrides) for name, overrides in TOGGLES.items()},
}
AT_FRAMES = (6_000, 12_000, 24_000)


def scores(overrides: tuple[str, ...], seed: int, threads: int) -> dict[int, float]:
    """Return the score at each of `AT_FRAMES`."""
    here = [f"seed={seed}", f"learner.threads={threads}", "system.workers=0"]
    spec = load_spec_here(SPEC, [*LEARNING, *overrides, *here]).spec
    found: dict[int, float] = {}
    with closing(assemble_without_actors(spec, torch.device("cpu"))) as training:
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
    group = GROUPS[options.group]
    rows: dict[str, list[dict[int, float]]] = {name: [] for name in group}
    for seed in range(1, options.seeds + 1):
        for name, overrides in group.items():
            rows[name].append(scores(overrides, seed, options.threads))
            print(f"seed {seed}, {name}: {rows[name][-1]}", flush=True)
    report = {
        **circumstances(),
        "settings": {
            "seeds": options.seeds,
            "threads": options.threads,
            "overrides": {name: (*LEARNING, *overrides) for name, overrides in group.items()},
        },
        "scores": rows,
        "summary": {name: summary(found) for name, found in rows.items()},
    }
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report["summary"], indent=2))


if __name__ == "__main__":
    main()
