"""What each agent of `runs/` costs: an update, the weights, the memory of a run, and frames/s of training.

update     milliseconds of a gradient step on one minibatch of the agent's replay and of what is due after it,
           by the accelerated layers and by PyTorch alone; both learners take turns
weights    of the online network, prediction heads included
memory     RAM of the whole run, by `--plan`
frames/s   training after the prefill with the spec's own replay ratio, final ε, threads and workers, and a
           small replay, from one update to another

The file is written after each agent, and agents that it has already from this machine stay:

python benchmarks/agents_cost.py --out agents_cost.json --agents btr btr_ln
python benchmarks/agents_cost.py --out agents_cost.json --table         prints the table of what it has
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from atari_dqn.agent.learner import Learner
from atari_dqn.assembly.acceleration import Plain
from atari_dqn.assembly.parts import build_learner
from atari_dqn.formatting import count, size
from atari_dqn.machine.contention import contention, read_core_times
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.machine.plan import make_plan
from atari_dqn.minibatch import Batch
from atari_dqn.spec.constraints import given
from atari_dqn.spec.schema import Spec
from atari_dqn.train.build import assemble
from atari_dqn.train.rate import Rate, small, timed, warm_up
from hardware import circumstances
from spec_here import load_spec_here

import torch

RUNS = Path(__file__).parents[1] / "runs"
CPU = torch.device("cpu")
AGENTS = {
    "pong_trackA": "DQN",
    "pong_quick": "`pong_quick`",
    "rainbow": "Rainbow",
    "hl_gauss": "HL-Gauss",
    "btr_small": "BTR, small",
    "btr": "BTR",
    "btr_ln": "BTR with layer normalisation",
    "atari100k_drq_eps": "DrQ(ε)",
    "spr": "SPR",
    "sr_spr": "SR-SPR",
    "bbf_rr2": "BBF, replay ratio 2",
    "pqn": "PQN",
    "drqn": "DRQN",
    "r2d2_small": "R2D2, small",
    "apex_small": "Ape-X, small, 8 actors",
}
"""The specs by their file in `runs/`, with the agents' names."""
HEADS = (
    "agent", "minibatch", "steps per update", "ms", "ms by PyTorch alone", "ratio", "weights", "RAM",
    "frames/s",
)  # fmt: skip


def measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure an agent as this machine would train it."""
    spec, before = load_spec_here(RUNS / f"{name}.toml").spec, read_core_times()
    with closing(assemble(small(spec), CPU)) as training:
        warm_up(training, updates=options.warm_up)
        rate = timed(training, options.seconds)
        batch, info, choices = training.recent.gather(), training.envs.info, training.backend.choices()
        learner = training.learner
    assert batch is not None, "there were updates"
    plain = build_learner(spec, info, CPU, Plain())
    update = costs_of_update({"accelerated": learner, "plain": plain}, batch, options)
    others, where = contention(before, read_core_times()), circumstances()
    return {
        "date": where["date"],
        "git": where["git"],
        **update,
        "weights": sum(weight.numel() for weight in learner.online.parameters()),
        "planned_bytes": planned(spec, info.num_actions),
        **training_speed(rate),
        **settings(spec),
        "torch_threads": torch.get_num_threads(),
        "acceleration": choices,
        "others_cores": others and round(others.others_cores, 2),
    }


def costs_of_update(
    learners: Mapping[str, Learner], batch: Batch, options: argparse.Namespace
) -> dict[str, Any]:
    """Time the update of each learner in turns; a turn has as many updates as its time has room for."""
    for learner in learners.values():
        milliseconds(learner, batch, 1)  # oneDNN prepares each shape once
    first = {name: milliseconds(learner, batch, 1) for name, learner in learners.items()}
    updates = {name: max(1, round(1e3 * options.turn / each)) for name, each in first.items()}
    rounds = [
        {name: milliseconds(learner, batch, updates[name]) for name, learner in learners.items()}
        for _ in range(options.rounds)
    ]
    return {
        "update_milliseconds": {name: statistics.median(row[name] for row in rounds) for name in learners},
        "plain_over_accelerated": statistics.median(row["plain"] / row["accelerated"] for row in rounds),
        "updates_of_a_turn": updates,
        "rounds_milliseconds": rounds,
    }


def milliseconds(learner: Learner, batch: Batch, updates: int) -> float:
    """Return the mean time of an update."""
    began = time.perf_counter()
    for _ in range(updates):
        learner.update(batch)
    return (time.perf_counter() - began) / updates * 1e3


def planned(spec: Spec, num_actions: int) -> dict[str, int]:
    """Return the bytes of the whole run, with its own replay, by `--plan`."""
    plan = make_plan(spec, num_actions=num_actions, device="cpu", hardware=find_hardware(Path.cwd()))
    return {"ram": plan.bytes("ram"), "disk": plan.bytes("disk")}


def training_speed(rate: Rate) -> dict[str, Any]:
    """Return a rate, with the numbers that it is the quotient of."""
    return {
        "frames_per_second": rate.frames_per_second,
        "measured_seconds": rate.seconds,
        "measured_updates": round(rate.updates_per_second * rate.seconds),
        "shares": rate.shares,
    }


def settings(spec: Spec) -> dict[str, Any]:
    """Collect the settings of a spec that its costs depend on."""
    frames = 1
    if spec.replay.kind == "sequences":
        frames = given(spec.replay.burn_in_steps) + given(spec.replay.sequence_steps)
    return {
        "batch_size": spec.learner.batch_size,
        "steps_of_a_sequence": frames,
        "steps_per_update": spec.learner.update_period_steps / spec.learner.updates_per_period,
        "num_envs": spec.env.num_envs,
        "workers": spec.system.workers,
        "precision": spec.learner.precision,
        "compile": spec.learner.compile,
    }


def table(agents: Mapping[str, Mapping[str, Any]]) -> str:
    """Format the costs as Markdown."""
    rows = [row(label, agents[name]) for name, label in AGENTS.items() if name in agents]
    return "\n".join([f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|", *rows])


def row(label: str, found: Mapping[str, Any]) -> str:
    """Format the costs of an agent."""
    took, length = found["update_milliseconds"], found["steps_of_a_sequence"]
    cells = [
        label,
        str(found["batch_size"]) + (f" × {length}" if length > 1 else ""),
        f"{found['steps_per_update']:g}",
        significant(took["accelerated"]),
        significant(took["plain"]),
        f"{found['plain_over_accelerated']:.2f}",
        count(found["weights"]),
        size(found["planned_bytes"]["ram"]),
        significant(found["frames_per_second"]),
    ]
    return f"| {' | '.join(cells)} |"


def significant(value: float) -> str:
    """Format a number with three significant digits and without an exponent."""
    return f"{float(f'{value:.3g}'):,.10g}"


def kept(path: Path) -> dict[str, Any]:
    """Read the agents of a file that this machine wrote; none where there is no such file."""
    if not path.exists():
        return {}
    found = json.loads(path.read_text())
    here, there = find_hardware(Path.cwd()), found["hardware"]
    if (here.cpu_model, list(here.cpu_flags or ())) != (there["cpu_model"], there["cpu_flags"] or []):
        raise SystemExit(f"--out {path}: was measured on another processor; name another file")
    return dict(found["agents"])


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write, or to add to")
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=list(AGENTS), metavar="SPEC")
    parser.add_argument("--seconds", type=float, default=15.0, help="of training, at least")
    parser.add_argument("--warm-up", type=int, default=8, help="updates before it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turn", type=float, default=1.0, help="seconds of an update's turn, or one update")
    parser.add_argument(
        "--table", action="store_true", help="print the table of the file, and measure nothing"
    )
    return parser.parse_args()


def main() -> None:
    options = parsed()
    if options.table:
        print(table(json.loads(options.out.read_text())["agents"]))
        return
    agents = kept(options.out)
    own = {key: getattr(options, key) for key in ("seconds", "warm_up", "rounds", "turn")}
    for name in options.agents:
        agents[name] = {**measure(name, options), "options": own}
        report = {**circumstances(), "agents": {each: agents[each] for each in AGENTS if each in agents}}
        options.out.write_text(json.dumps(report, indent=2) + "\n")
        print(row(AGENTS[name], agents[name]), flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
