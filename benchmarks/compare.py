"""`dqn compare` on 300 runs of 200 rows a table: wall-clock seconds and peak memory of the whole command.

Twelve methods on five games, five seeds each, in tables as a run writes them; the values are noise. Each
round is a process of its own, so that imports, reading, statistics and printing are all in the figures.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from atari_dqn.run.directory import RunDirectory
from atari_dqn.spec.digest import spec_digest
from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.protocol import Protocol, evaluation_protocol
from atari_dqn.spec.render import resolved_toml
from atari_dqn.telemetry.columns import column_names
from hardware import circumstances

import numpy as np

GAMES = ("pong", "breakout", "space_invaders", "seaquest", "qbert")
METHODS = 12
SEEDS = 5
ROWS = 200
PERIOD_FRAMES = 500_000
TRACK_A = Path(__file__).parents[1] / "runs" / "pong_trackA.toml"
MAX_SECONDS = 2.0
MAX_BYTES = 400_000_000


def make_runs(root: Path) -> Iterator[Path]:
    for game in GAMES:
        for method in range(METHODS):
            for seed in range(1, SEEDS + 1):
                yield make_run(root, game, method, seed)


def make_run(root: Path, game: str, method: int, seed: int) -> Path:
    overrides = [f"game={game}", f"seed={seed}", f"learner.batch_size={16 + method}"]
    resolved = load_spec(TRACK_A, [*overrides, f"evaluation.light_period_frames={PERIOD_FRAMES}"])
    protocol = evaluation_protocol(
        resolved.spec, episodes=30, checkpoint="last", ale_version="0.12.1", rom_md5="0" * 32
    )
    record = {
        "name": f"{game}_m{method:02}",
        "track": {"label": resolved.track_label, "deviations": list(resolved.deviations)},
        "protocols": {protocol.digest(): asdict(protocol)},
    }
    path = root / f"{game}_{method}_{seed}"
    run = RunDirectory.create(path, resolved_toml(resolved), spec_digest(resolved.spec), record)
    rng = np.random.default_rng([method, seed])
    for table in ("eval_log", "update_log", "throughput_log"):
        (run.tables / f"{table}.csv").write_text(table_text(table, rng, protocol))
    return path


def table_text(table: str, rng: np.random.Generator, protocol: Protocol) -> str:
    columns = column_names(table)
    lines = [",".join(columns)]
    for row in range(1, ROWS + 1):
        frames = row * PERIOD_FRAMES
        known = {
            "step": frames // 4,
            "env_frames": frames,
            "eval_type": "final" if row == ROWS else "full",
            "episodes": 30,
            "elapsed_seconds": row * 600.0,
            "frame_caps": 0,
            "protocol": protocol.digest(),
        }
        lines.append(",".join(str(known.get(name, float(rng.normal()))) for name in columns))
    return "\n".join(lines) + "\n"


def measure(paths: list[Path]) -> dict[str, float]:
    """Measure one command: seconds from start to exit, and its largest resident size."""
    program = "from atari_dqn.cli import main; main()"
    command = [sys.executable, "-c", program, "compare", *map(str, paths)]
    before = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "COLUMNS": "80"}) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return {"seconds": time.perf_counter() - before, "peak_bytes": peak_bytes(usage)}


def peak_bytes(usage: resource.struct_rusage) -> int:
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = list(make_runs(Path(folder)))
        rounds = [measure(paths) for _ in range(arguments.rounds)]
    seconds = statistics.median(each["seconds"] for each in rounds)
    peak = max(each["peak_bytes"] for each in rounds)
    document = {
        **circumstances(),
        "runs": len(paths),
        "rows_of_each_table": ROWS,
        "promised": {"seconds": MAX_SECONDS, "peak_bytes": MAX_BYTES},
        "median_seconds": seconds,
        "max_peak_bytes": peak,
        "rounds": rounds,
    }
    arguments.out.write_text(json.dumps(document, indent=2) + "\n")
    print(f"{seconds:.2f} s, {peak / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
