"""Keep the scores of `dqn sweep recall`, and make their page: a table, and a plot of the learning curves.

Recall is the toy game that no agent without memory can score more than 0 in (`atari_dqn/envs/recall.py`).
The sweep keeps each finished run and continues where it was stopped. The page is made from the CSV alone:

dqn sweep recall
python benchmarks/recall.py outputs/recall        the CSV, the plot and the page
python benchmarks/recall.py                       the plot and the page, from the CSV that is there
"""

from __future__ import annotations

from functools import partial
from statistics import fmean

from memory_pages import circumstances, draw_curves, final_scores, make_page, score

import polars as pl

METHODS = {
    "r2d2": "R2D2",
    "drqn": "DRQN",
    "dqn_4_frames": "DQN, 4 frames",
    "dqn_1_frame": "DQN, 1 frame",
}
BEST, CHANCE, TRIALS = 5.0, 0.0, 5

TEXT = """\
# Is memory what Recall needs?

[Recall](../algorithms.md#games-with-a-hidden-state) is a toy game. An agent that remembers a light over ten
dark steps scores 5. The mean score of an agent without memory is 0 at most, whatever it learns; that of
random play is −1.67. The scores of {games} games after {frames:,} frames, by seed:

{head}
{line}
{rows}

All agents have the same frames, exploration, optimizer and number of updates. Their convolutions and hidden
layers have the same sizes ([recall.toml](../../runs/sweeps/recall.toml)). An answer is worth 1 or −1, so
that the standard error of a score at chance is {error:.1f} for {games} games with five answers each. Agents
of one seed play the same games: those that always answer with one side have equal scores.

![Score by frames: {agents}](recall/curves.png)

**Not shown:** more dark steps than ten; other games that need memory; what memory costs in time
([costs of the agents](../algorithms.md#what-an-agent-costs)).

{circumstances}. Made by `dqn sweep recall` and
`python benchmarks/recall.py outputs/recall` from [evaluations.csv](recall/evaluations.csv).
"""


def main() -> None:
    draw = partial(draw_curves, methods=METHODS, marked={"best": BEST, "best mean\nwithout memory": CHANCE})
    make_page(str(__doc__), "recall", "recall", page, draw)


def page(rows: pl.DataFrame) -> str:
    """Make the page."""
    final = rows.filter(pl.col("eval_type") == "final")
    seeds = sorted(final["seed"].unique())
    games, frames = int(final["episodes"].to_numpy().max()), int(final["env_frames"].to_numpy().max())
    return TEXT.format(
        agents=", ".join(METHODS.values()),
        games=games,
        frames=frames,
        head=f"| agent | {' | '.join(f'seed {seed}' for seed in seeds)} | mean | of the best score |",
        line="|---|" + "---|" * (len(seeds) + 2),
        rows="\n".join(table_row(rows, method, seeds) for method in METHODS),
        error=TRIALS**0.5 / games**0.5,
        circumstances=circumstances(rows),
    )


def table_row(rows: pl.DataFrame, method: str, seeds: list[int]) -> str:
    """Format a method's scores, its mean and the share of the best score."""
    found = final_scores(rows, method)
    mean = fmean(found.values())
    cells = [score(found[seed]) if seed in found else "–" for seed in seeds]
    return f"| {METHODS[method]} | {' | '.join(cells)} | {score(mean)} | {mean / BEST:.0%} |"


if __name__ == "__main__":
    main()
