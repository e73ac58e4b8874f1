"""Stands in for `dqn train` and `dqn resume`: makes a run directory and ends as a file next to it says.

    fake_training.py train SPEC --run-dir RUN …     fake_training.py resume RUN …

RUN.plan holds exit codes, one for each call; `-9` kills the process, `wait:N` waits for SIGTERM, then makes
RUN/stopped and ends with N, or 143 for `wait`, `checkpoint:N` makes a checkpoint of a new step and ends with
N, `game:N` finishes a game of an evaluation and ends with N, `finished:N` writes a summary and ends with N,
`after:NAME` waits for a file of this name next to the run, then ends with 0.
Without the file it ends with 0.
Exit code 0 writes a summary. Each call appends its words and its environment to RUN.calls.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

words = sys.argv[1:]
run = Path(words[words.index("--run-dir") + 1] if words[0] == "train" else words[1])
calls, plan = run.with_name(f"{run.name}.calls"), run.with_name(f"{run.name}.plan")
number = len(calls.read_text().splitlines()) if calls.exists() else 0
environment = {name: os.environ.get(name) for name in ("OMP_NUM_THREADS", "DQN_LEASE_TOKEN")}
with calls.open("a") as file:
    cores = sorted(os.sched_getaffinity(0))
    file.write(json.dumps({"words": words, "cores": cores, "pid": os.getpid(), **environment}) + "\n")
(run / "checkpoints").mkdir(parents=True, exist_ok=True)
(run / "spec.toml").touch()
steps = plan.read_text().split() if plan.exists() else []
step = steps[number] if number < len(steps) else "0"
if step.startswith("checkpoint:"):
    (run / "checkpoints" / f"step_{number:09d}").mkdir()
    step = step.partition(":")[2]
if step.startswith("game:"):
    with (run / "evaluation_progress.jsonl").open("a") as games:
        games.write("{}\n")
    step = step.partition(":")[2]
if step.startswith("after:"):
    while not run.with_name(step.partition(":")[2]).exists():
        time.sleep(0.05)
    step = "0"
if step.startswith("wait"):
    stops: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stops.append(number))
    (run / "waiting").touch()
    while not stops:
        time.sleep(0.05)
    (run / "stopped").touch()
    step = step.partition(":")[2] or "143"
if step.startswith("finished:"):
    (run / "summary.json").write_text("{}")
    step = step.partition(":")[2]
if step.startswith("-"):
    os.kill(os.getpid(), -int(step))
if step == "0":
    (run / "summary.json").write_text("{}")
    (run / "spec.toml").touch()
else:
    sys.stderr.write(f"some output\nerror: the reason of {step}\n")
sys.exit(int(step))
