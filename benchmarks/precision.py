"""Whether `learner.precision = "bf16"` learns as "fp32" does: scores over seeds, and gradients.

`--part toy` learns the toy game, `--part atari` the first frames of an Atari game by the spec of
`runs/pong_quick.toml`, which has the small network of data-efficient Rainbow. Each seed is learned in both
precisions, and scored by games of its last weights. The weights that fp32 arrives at, with minibatches of
that run's replay, give the gradients: of the same loss, computed in fp32, bf16 and float64. Their deviation
is |g − g₆₄| / |g₆₄|, of all weights together. Each run that has ended is kept in a file of `--keep`; the
same command, started again, makes the others alone.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

from atari_dqn.agent import rules
from atari_dqn.agent.network import QNetwork
from atari_dqn.assembly.acceleration import Plain
from atari_dqn.assembly.parts import build_network
from atari_dqn.compare.statistics import difference
from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.minibatch import Frames, Minibatch
from atari_dqn.run.scores import EvaluationScore
from atari_dqn.spec.schema import Spec
from atari_dqn.train.build import assemble_without_actors
from atari_dqn.train.loop import q_learning
from atari_dqn.train.training import Training
from hardware import circumstances
from spec_here import load_spec_here
from toy_game import LEARNING

import numpy as np
import torch
from torch import Tensor

RUNS = Path(__file__).parents[1] / "runs"
Precision = Literal["fp32", "bf16"]
PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16")
CPU = torch.device("cpu")


@dataclass(frozen=True, kw_only=True)
class Part:
    """What is learned, and how it is scored."""

    spec: Path
    overrides: tuple[str, ...]
    games: int


TOY = Part(
    spec=RUNS / "catch_smoke.toml",
    overrides=(*LEARNING, "env.num_envs=8", "env.screen_size_pixels=36"),
    games=20,
)


def atari(game: str, frames: int) -> Part:
    """Return the first `frames` frames of a game."""
    overrides = (f"game={game}", f"training.total_frames={frames}", "evaluation.epsilon=0.05")
    return Part(spec=RUNS / "pong_quick.toml", overrides=overrides, games=5)


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The score, the time and the deviations of gradients of one run."""

    score: float
    seconds: float
    deviations: dict[str, list[float]]
    """Of each precision, a number for each minibatch; empty of a run that is not in fp32."""


def learn_all(part: Part, options: argparse.Namespace) -> dict[str, list[RunResult]]:
    """Return each precision's runs, in the order of their seeds."""
    cases = [(seed, precision) for seed in range(1, options.seeds + 1) for precision in PRECISIONS]
    rows: dict[str, list[RunResult]] = {precision: [] for precision in PRECISIONS}
    with ProcessPoolExecutor(options.at_once, mp_context=get_context("spawn")) as pool:
        runs = [pool.submit(load_or_learn, options.keep, part, *case, options.minibatches) for case in cases]
        for (seed, precision), run in zip(cases, runs, strict=True):
            rows[precision].append(run.result())
            score, seconds = rows[precision][-1].score, rows[precision][-1].seconds
            print(f"seed {seed}, {precision}: {score:.1f}, {seconds:.0f} s", flush=True)
    return rows


def load_or_learn(folder: Path, part: Part, seed: int, precision: str, minibatches: int) -> RunResult:
    """Return a run that `folder` has, or train it and keep it there."""
    file = folder / f"seed{seed}_{precision}.json"
    settings = {"overrides": list(part.overrides), "minibatches": minibatches}
    if file.exists():
        found = json.loads(file.read_text())
        if found["settings"] != settings:
            raise SystemExit(f"{file}: has other settings; name another folder with --keep")
        return RunResult(**found["run"])
    run = learn(part, seed, precision, minibatches)
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"settings": settings, "run": asdict(run)}) + "\n")
    return run


def learn(part: Part, seed: int, precision: str, minibatches: int) -> RunResult:
    """Train one run and score it."""
    overrides = [
        *part.overrides,
        "learner.threads=1",
        "system.workers=0",
        f"seed={seed}",
        f"learner.precision={precision}",
    ]
    spec = load_spec_here(part.spec, overrides).spec
    began = time.process_time()
    with closing(assemble_without_actors(spec, CPU)) as training:
        training.begin()
        for _ in q_learning(training):
            pass
        seconds = time.process_time() - began
        games = evaluate(training.learner.online, spec, episodes=part.games)
        found = deviations(training, spec, minibatches) if precision == "fp32" else {}
    return RunResult(score=EvaluationScore.of(games).mean_return, seconds=seconds, deviations=found)


def deviations(training: Training, spec: Spec, minibatches: int) -> dict[str, list[float]]:
    """Return how far the gradients of each precision lie from those of float64."""
    found: dict[str, list[float]] = {precision: [] for precision in PRECISIONS}
    training.replay.prepare(training.schedule_frames)
    for _ in range(minibatches):
        batch = training.replay.sample()
        exact = gradient(training, spec, batch, None)
        for precision in PRECISIONS:
            away = gradient(training, spec, batch, precision) - exact
            found[precision].append(float(away.norm() / exact.norm()))
    return found


def gradient(training: Training, spec: Spec, batch: Minibatch, precision: Precision | None) -> Tensor:
    """Return the gradient of a run's loss over a minibatch, of all weights; computed in float64 for None."""
    online, target = (
        copy_network(network, training, spec, precision)
        for network in (training.learner.online, training.learner.target)
    )
    with torch.no_grad():
        q_t = q_values(target, batch.s_t)
        q_t_selector = q_values(online, batch.s_t) if spec.toggles.double else q_t
        v_t = rules.gather_q(q_t, q_t_selector.argmax(dim=1))
        goal = batch.r_t.to(v_t) + batch.discount_t.to(v_t) * v_t
    loss = rules.huber(goal - rules.gather_q(q_values(online, batch.s_tm1), batch.a_tm1))
    gradients = torch.autograd.grad((loss * batch.weight.to(loss)).mean(), list(online.parameters()))
    return torch.cat([each.double().flatten() for each in gradients])


def copy_network(network: QNetwork, training: Training, spec: Spec, precision: Precision | None) -> QNetwork:
    """Return a network with the same weights: as a run computes it in a precision, in float64 for None."""
    of_precision = replace(spec, learner=replace(spec.learner, precision=precision or "fp32"))
    backend = Plain() if precision is None else None  # our kernels have no float64
    made = build_network(of_precision, training.envs.info, CPU, backend)
    made.load_state_dict(network.state_dict())
    return made if precision else made.double()


def q_values(network: QNetwork, frames: Frames) -> Tensor:
    """Compute q-values; in float64 without the way through fp32 that a network has before its head."""
    if next(network.parameters()).dtype is not torch.float64:
        return network(frames)
    return network.value(network.head(network.torso(frames.double()))).q_values()


def report(part: Part, rows: dict[str, list[RunResult]], options: argparse.Namespace) -> dict[str, object]:
    """Return settings, every run's figures, and what they add up to."""
    scores = {name: np.array([[run.score] for run in found]) for name, found in rows.items()}
    apart = difference(scores["bf16"], scores["fp32"])
    of_gradients = {
        name: np.concatenate([run.deviations[name] for run in rows["fp32"]]) for name in PRECISIONS
    }
    return {
        **circumstances(),
        "settings": {
            "part": options.part, "spec": part.spec.name, "overrides": part.overrides, "games": part.games,
            "seeds": options.seeds, "minibatches": options.minibatches, "threads": 1,
        },
        "runs": {name: [asdict(run) for run in found] for name, found in rows.items()},
        "summary": {
            "mean": {name: float(found.mean()) for name, found in scores.items()},
            "standard_deviation": {name: float(found.std(ddof=1)) for name, found in scores.items()},
            "bf16_less_fp32": asdict(apart),
            "seconds": {name: float(np.mean([run.seconds for run in found])) for name, found in rows.items()},
            "gradient_deviation": {
                name: {"mean": float(found.mean()), "largest": float(found.max())}
                for name, found in of_gradients.items()
            },
        },
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--keep", type=Path, required=True, help="folder of the runs that have ended")
    parser.add_argument("--part", choices=("toy", "atari"), default="toy")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--minibatches", type=int, default=16, help="per seed, for the gradients")
    parser.add_argument("--at-once", type=int, default=1, help="runs side by side, each on one thread")
    parser.add_argument("--game", default="road_runner")
    parser.add_argument("--frames", type=int, default=100_000)
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error("--seeds: the interval of a difference takes two or more")
    part = TOY if options.part == "toy" else atari(options.game, options.frames)
    made = report(part, learn_all(part, options), options)
    options.out.write_text(json.dumps(made, indent=2) + "\n")
    print(json.dumps(made["summary"], indent=2))


if __name__ == "__main__":
    main()
