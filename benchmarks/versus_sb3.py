"""Track A on Pong beside Stable-Baselines3's DQN: emulator frames/s after the prefill, taking turns.

Both: one game, fp32 on the CPU, the Nature network, batch 32 every 4 agent steps, the target network copied
at the same period, ε fixed, as many torch threads. Each has its own optimizer, replay and preprocessing.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from hardware import circumstances

HERE = Path(__file__).parent
SETTINGS = {
    "epsilon": 0.1,
    "capacity_steps": 10_000,
    "prefill_steps": 1_000,
    "target_period_updates": 2_500,
    "warm_up_updates": 50,
}
GAME, SB3_GAME = "pong", "PongNoFrameskip-v4"
SB3_PACKAGES = ("stable-baselines3==2.9.*", "ale-py==0.12.*", "opencv-python-headless", "gymnasium")


def prepare(venv: Path) -> Path:
    """Return the interpreter of an environment with Stable-Baselines3 and our own version of torch."""
    python = venv / "bin" / "python"
    ready = venv / "ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        torch = f"torch=={version('torch').partition('+')[0]}"
        for packages in ((torch,), (torch, *SB3_PACKAGES)):  # torch first, so that pip keeps its build
            subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        ready.touch()
    return python


def measure(
    python: Path | str, script: str, game: str, *, seconds: float, threads: int, **more: object
) -> dict[str, object]:
    """Return what one run of a worker script prints."""
    settings = {"game": game, "seconds": seconds, "threads": threads, **SETTINGS, **more}
    options = [text for key, value in settings.items() for text in (f"--{key.replace('_', '-')}", str(value))]
    done = subprocess.run(
        [python, HERE / script, *options],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=environment(threads),
    )
    result: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return result


def environment(threads: int) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}


def compare(python: Path, *, rounds: int, seconds: float, threads: int) -> dict[str, object]:
    """Return each round's figures, their medians and the median ratio of a round."""
    ours, sb3 = [], []
    for _ in range(rounds):
        ours.append(measure(sys.executable, "train_ours.py", GAME, seconds=seconds, threads=threads))
        sb3.append(measure(python, "train_sb3.py", SB3_GAME, seconds=seconds, threads=threads))
        print(f"ours {speed(ours[-1]):,.0f}, SB3 {speed(sb3[-1]):,.0f} frames/s", file=sys.stderr)
    ratios = [speed(mine) / speed(theirs) for mine, theirs in zip(ours, sb3, strict=True)]
    return {
        "ours": ours,
        "sb3": sb3,
        "median_ours_frames_per_second": statistics.median(map(speed, ours)),
        "median_sb3_frames_per_second": statistics.median(map(speed, sb3)),
        "median_ratio": statistics.median(ratios),
    }


def speed(result: dict[str, object]) -> float:
    return float(str(result["frames_per_second"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--venv", type=Path, default=Path(tempfile.gettempdir()) / "versus_sb3_venv")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of torch, in both")
    options = parser.parse_args()
    result = compare(
        prepare(options.venv), rounds=options.rounds, seconds=options.seconds, threads=options.threads
    )
    settings = {**SETTINGS, "game": GAME, "seconds": options.seconds, "threads": options.threads}
    report = {"settings": settings, **circumstances(), **result}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
