"""Count the runs and the emulator frames behind the pages of results, from the kept files.

A run counts up to its last kept evaluation, game or iteration, and once, even if several pages show it: runs
of one spec and seed that began in the same minute are one. The files of `first_command.py` say how far its
runs trained, and the log of speed does of the run on a GPU.

python docs/results/frames.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl

RESULTS = Path(__file__).parent
FIRST_COMMANDS = ("first_command", "first_command_avx2", "first_command_bf16")
LOGS = ("gpu_btr_pong",)
"""Folders with the logs of one run."""

Run = tuple[str, ...]
"""What tells runs apart: the digest of the spec and the start; where they are not kept, other names."""


def main() -> None:
    for folder, frames in by_folder().items():
        print(f"{folder:24} {len(frames):4} runs {sum(frames.values()):14,} frames")
    print(sentence())


def sentence() -> str:
    """Format the number of different runs, and of their frames."""
    runs = {run: frames for kept in by_folder().values() for run, frames in kept.items()}
    return f"{len(runs)} runs of {sum(runs.values()) / 1e6:.1f} million emulator frames in all"


def by_folder() -> dict[str, dict[Run, int]]:
    """Return the frames of each kept run, by the folder or the file in which it is kept."""
    folders = sorted(path.parent for path in RESULTS.glob("*/evaluations.csv"))
    found = {folder.name: dict(_runs_of(folder)) for folder in folders}
    found |= {name: {(name,): _trained(RESULTS / name)} for name in LOGS}
    return found | {name: dict(_first_commands(name)) for name in FIRST_COMMANDS}


def _runs_of(folder: Path) -> Iterator[tuple[Run, int]]:
    keys = ["run"] if (folder / "runs.csv").exists() else ["method", "seed"]
    paths = [folder / f"{name}.csv" for name in ("evaluations", "games", "iterations")]
    tables = [pl.read_csv(path).select(*keys, "env_frames") for path in paths if path.exists()]
    reached = pl.concat(table for table in tables if len(table))
    reached = reached.group_by(keys).agg(pl.col("env_frames").max())
    if keys != ["run"]:
        for *name, frames in reached.iter_rows():
            yield (folder.name, *map(str, name)), frames
        return
    identities = pl.read_csv(folder / "runs.csv").select("run", "spec_digest", "started")
    for _, frames, digest, start in reached.join(identities, on="run").iter_rows():
        yield (digest, start), frames


def _trained(folder: Path) -> int:
    frames: int = pl.read_csv(folder / "throughput_log.csv")["env_frames"].max()  # type: ignore[assignment]
    return frames


def _first_commands(name: str) -> Iterator[tuple[Run, int]]:
    seeds = json.loads((RESULTS / f"{name}.json").read_text())["seeds"]
    for seed, values in seeds.items():
        yield (name, seed), values["trained_frames"]


if __name__ == "__main__":
    main()
