"""Whether a run that an earlier version began is the same run, to the bit, when this version goes on with it.

    git worktree add ../earlier COMMIT && (cd ../earlier && python setup.py build_ext --inplace)
    python benchmarks/resume_of_earlier.py --earlier ../earlier --out FILE

The earlier version makes each case twice: to its end, and killed by SIGKILL on the way. This version resumes
what was killed. Tables to the byte, state digest, evaluations, summary and what is kept must be the same.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from hardware import circumstances

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from killing import ONE_THREAD, SPEC, differences, outcome

HERE = Path(__file__).parents[1]
PROGRAM = "import sys; sys.path.insert(0, {root!r}); from atari_dqn.cli import main; main()"


@dataclass(frozen=True)
class Case:
    """What is run, and after how many lines of its output it is killed."""

    name: str
    overrides: tuple[str, ...]
    lines: int


# Keys by their first names, which every version reads.
CASES = (
    Case("pong, Track A", ("game=pong", "track=A"), 18),
    Case("breakout, Track B, 8 environments", ("game=breakout", "track=B", "env.lanes=8"), 20),
    Case("seaquest, C51 with noisy layers", ("game=seaquest", "track=B", "toggles.noisy=true",
         "toggles.distribution=c51", "exploration.epsilon_start=0", "exploration.epsilon_end=0"), 16),
    Case("qbert, bf16, 2 workers", ("game=qbert", "learner.precision=bf16", "env.lanes=2",
         "system.workers=2"), 22),
)  # fmt: skip


def begin(root: Path, words: list[str], lines: int | None = None) -> bool:
    """Run `dqn` of the package under `root`, killed after so many lines; return whether it was killed."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(root=str(root)), *words, "--plain"],
        cwd=root,
        start_new_session=True,
        stdout=subprocess.PIPE,
        env={**os.environ, **ONE_THREAD},
    ) as process:
        assert process.stdout is not None
        shown = list(islice(process.stdout, lines))
        if lines is not None and len(shown) == lines:
            os.killpg(process.pid, signal.SIGKILL)
    if process.returncode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"{words[0]} under {root} ended with exit code {process.returncode}")
    return process.returncode != 0


def result_of(case: Case, earlier: Path, spec: Path, folder: Path) -> dict[str, Any]:
    options = [word for override in case.overrides for word in ("--set", override)]
    begin(earlier, ["train", str(spec), "--run-dir", str(folder / "whole"), *options])
    killed = begin(earlier, ["train", str(spec), "--run-dir", str(folder / "run"), *options], case.lines)
    resumed_from = (folder / "run/checkpoints/latest").resolve().name
    begin(HERE, ["resume", str(folder / "run")])
    found = differences(outcome(folder / "run"), outcome(folder / "whole"))
    print(f"{case.name}: from {resumed_from}: {', '.join(found) or 'no difference'}", flush=True)
    return {**asdict(case), "killed": killed, "resumed_from": resumed_from, "differences": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--earlier", type=Path, required=True, help="a checkout of the earlier version")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    began, earlier = time.monotonic(), arguments.earlier.resolve()
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=earlier, text=True).strip()
    results = []
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            spec = Path(folder) / "killed_atari.toml"
            # a period of checkpoints is a key that the earlier version does not have
            spec.write_text(SPEC.read_text().replace("period_frames = 500\n", ""))
            results.append(result_of(case, earlier, spec, Path(folder)))
    totals = {
        "earlier_commit": commit,
        "runs": len(results),
        "runs_that_differ": sum(bool(result["differences"]) for result in results),
        "seconds": round(time.monotonic() - began),
    }
    print(json.dumps(totals, indent=2))
    arguments.out.write_text(json.dumps({**totals, "results": results, **circumstances()}, indent=2) + "\n")
    sys.exit(any(result["differences"] for result in results))


if __name__ == "__main__":
    main()
