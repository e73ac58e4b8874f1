"""Keep the scores of `dqn sweep one_frame_pong`, and make their page: a table, and a plot of the curves.

The sweep keeps each finished run and continues where it was stopped. The page is made from the CSV alone:

dqn sweep one_frame_pong
python benchmarks/one_frame_pong.py outputs/one_frame_pong    the CSV, the plot and the page
python benchmarks/one_frame_pong.py                           both, from the CSV that is there
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from atari_dqn.compare.statistics import column, difference
from memory_pages import circumstances, draw_curves, final_scores, make_page, score

import polars as pl

METHODS = {"lstm": "LSTM, 1 frame", "dqn_1_frame": "no memory, 1 frame"}
BEST, WORST = 21.0, -21.0

TEXT = """\
# Does memory help on Pong when the observation is a single frame?

A single frame does not show where the ball is going. Both agents have the settings of `pong_quick` but for
the frame; one has an LSTM in place of a hidden layer and learns from sequences of 12 steps with 4 before
them as burn-in ([one_frame_pong.toml](../../runs/sweeps/one_frame_pong.toml)). As many updates of each; with
the LSTM an update learns from three times as many steps. Mean score of evaluations of five games, ε 0.05,
and of the last one, of {games} games:

{table}

![Score by frames: {agents}](one_frame_pong/curves.png)

**Two seeds of each do not show that memory helps**: the mean with the LSTM is {difference}, by
Welch's t-test ([decision 89](../decisions/0089-a-difference-is-shown-by-welchs-interval.md)). They show that
an agent with memory can win. Without memory both seeds lose almost every point. With it, seed 2 wins; seed 1
learns next to nothing within {frames:,} frames, and the norm of its LSTM's state grows throughout training,
which indicates saturated units, while that of seed 2 stays where it was (`state_norm` of
[memory_log.csv](../run_directory.md)):

{norms}

**Not shown:** frames that flicker; more seeds than two; other games; which of the two would be better in
equal time: an agent with the LSTM trains at about half the speed.

{circumstances}; seed 1 with the LSTM was stopped
and resumed once. Made by `dqn sweep one_frame_pong` and
`python benchmarks/one_frame_pong.py outputs/one_frame_pong` from
[evaluations.csv](one_frame_pong/evaluations.csv).
"""


def main() -> None:
    draw = partial(draw_curves, methods=METHODS, marked={"best": BEST, "worst": WORST})
    make_page(str(__doc__), "one_frame_pong", "pong", page, draw)


def page(rows: pl.DataFrame) -> str:
    """Make the page."""
    final = rows.filter(pl.col("eval_type") == "final")
    return TEXT.format(
        games=int(final["episodes"].to_numpy().max()),
        frames=round(final["env_frames"].to_numpy().max(), -5),
        table=table(rows, "mean_return", METHODS, 1),
        norms=table(rows.filter(pl.col("method") == "lstm"), "state_norm", {"lstm": "norm of the state"}, 1),
        difference=more_with_memory(rows),
        agents=", ".join(METHODS.values()),
        circumstances=circumstances(rows),
    )


def more_with_memory(rows: pl.DataFrame) -> str:
    """Format the difference of the mean final scores of both agents, with its 95 % interval."""
    lstm, without = (column(list(final_scores(rows, method).values())) for method in METHODS)
    found = difference(lstm, without)
    assert found.interval, "each agent has two seeds"
    low, high = score(found.interval.low, 0), score(found.interval.high, 0)
    return f"{score(found.value, 1)} higher [{low}, {high}]"


def table(rows: pl.DataFrame, column: str, labels: Mapping[str, str], digits: int) -> str:
    """Format a column of every run, at each third evaluation and at the last."""
    is_light = pl.col("eval_type") != "final"
    shown = sorted({round(frames, -5) for frames in rows.filter(is_light)["env_frames"]})[2::3]
    lines = [
        "| | seed | " + " | ".join(f"{frames / 1e6:.1f}M" for frames in shown) + " | final |",
        "|---" * (len(shown) + 3) + "|",
    ]
    for method, label in labels.items():
        for (seed,), run in rows.filter(pl.col("method") == method).group_by("seed", maintain_order=True):
            light, last = run.filter(is_light), run.filter(~is_light)
            at = {
                round(frames, -5): score(value, digits)
                for frames, value in zip(light["env_frames"], light[column], strict=True)
            }
            values = [*(at.get(frames, "–") for frames in shown), score(last[column].item(), digits)]
            lines.append(f"| {label} | {seed} | {' | '.join(values)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
