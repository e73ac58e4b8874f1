"""Read nnabla-rl's evaluations, and keep those next to which Track A's page sets ours.

python scripts/nnabla_rl_evaluations.py CLONE

CLONE is a clone of sony/nnabla-rl at the commit that `compare/reference/sources.toml` names. Each run has a
file `evaluation_result_scalar.tsv` with an evaluation after each million emulator frames.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import polars as pl

PUBLISHED = Path(__file__).parents[1] / "docs" / "results" / "track_a" / "published.csv"
KEPT_GAMES = ("breakout", "pong")
KEPT_UNTIL_FRAMES = 12_000_000
"""Track A's page compares scores up to 10M frames, which are means of evaluations up to 12M."""
ALGORITHMS = {
    "c51": "c51",
    "double_dqn": "ddqn",
    "dqn": "dqn",
    "iqn": "iqn",
    "m_dqn": "munchausen_dqn",
    "m_iqn": "munchausen_iqn",
    "qr_dqn": "qrdqn",
    "rainbow": "rainbow",
}
"""The folders of the runs by agent, as our tables name it. All runs are evaluated every million frames."""
FRAMES_PER_ITERATION = 4
"""Emulator frames of one of nnabla-rl's iterations, which are agent steps."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("clone", type=Path, help="a clone of sony/nnabla-rl")
    rows = evaluations(parser.parse_args().clone, "dqn")
    kept = rows.filter(pl.col("game").is_in(KEPT_GAMES), pl.col("env_frames") <= KEPT_UNTIL_FRAMES)
    kept.drop("agent").write_csv(PUBLISHED)
    print(f"{PUBLISHED}: {kept.height} evaluations")


def evaluations(clone: Path, *agents: str) -> pl.DataFrame:
    """Return every evaluation of some agents' runs by agent, game, seed and frames."""
    return pl.concat(_run(agent, file) for agent in agents for file in _files(clone, agent)).sort(
        "agent", "game", "seed", "env_frames"
    )


def _files(clone: Path, agent: str) -> list[Path]:
    folder = clone / "reproductions" / "algorithms" / "atari" / ALGORITHMS[agent] / "reproduction_results"
    found = sorted(folder.glob("*NoFrameskip-v4_results/seed-*/evaluation_result_scalar.tsv"))
    if not found:
        raise SystemExit(f"{folder}: no evaluations")
    return found


def _run(agent: str, file: Path) -> pl.DataFrame:
    """Read the evaluations of a run; of two after the same frames the first: a restart left the other."""
    rows = pl.read_csv(file, separator="\t").unique("iteration", keep="first", maintain_order=True)
    return rows.select(
        agent=pl.lit(agent),
        game=pl.lit(_rom_name(file.parts[-3].removesuffix("NoFrameskip-v4_results"))),
        seed=pl.lit(int(file.parent.name.removeprefix("seed-"))),
        env_frames=pl.col("iteration").cast(pl.Int64) * FRAMES_PER_ITERATION,
        mean_return="mean",
        std_return="std_dev",
        median_return="median",
        min_return="min",
        max_return="max",
    )


def _rom_name(name: str) -> str:
    """Return ALE's name of a game that Gym names in capitals: `UpNDown` is `up_n_down`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


if __name__ == "__main__":
    main()
