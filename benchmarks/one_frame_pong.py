"""Keep the scores of `dqn sweep one_frame_pong`, and make their page: a table, and a plot of the curves.

The sweep keeps each finished run and continues where it was stopped. The page is made from the CSV alone:

dqn sweep one_frame_pong
python benchmarks/one_frame_pong.py outputs/one_frame_pong    the CSV, the plot and the page
python benchmarks/one_frame_pong.py                           the plot and the page, from the CSV that is there
"""

from __future__ import annotations

from functools import partial

import polars as pl
from memory_pages import circumstances, draw_curves, make_page, score

METHODS = {"lstm": "LSTM, 1 frame", "dqn_1_frame": "no memory, 1 frame"}
BEST, WORST = 21.0, -21.0

TEXT = """\
# Does memory help where one frame of Pong is all that an agent sees?

A single frame does not show where the ball is going. Both agents have the settings of `pong_quick` but for
the frame; one has an LSTM in place of a hidden layer and learns from sequences of 12 steps with 4 before
them as burn-in ([one_frame_pong.toml](../../runs/sweeps/one_frame_pong.toml)). As many updates of each; with
the LSTM an update learns from three times as many steps. Mean score of evaluations of five games, ε 0.05,
and of the last one, of {games} games:

{table}

![Score by frames: {agents}](one_frame_pong/curves.png)

**Not shown:** frames that flicker; more seeds than two; other games; which of the two would be better in
equal time: an agent with the LSTM trains at about half the speed.

{circumstances}. Made by `dqn sweep one_frame_pong` and
`python benchmarks/one_frame_pong.py outputs/one_frame_pong` from
[evaluations.csv](one_frame_pong/evaluations.csv).
"""


def main() -> None:
    draw = partial(draw_curves, methods=METHODS, marked=(BEST, WORST))
    make_page(str(__doc__), "one_frame_pong", "pong", page, draw)


def page(rows: pl.DataFrame) -> str:
    """Make the page."""
    final = rows.filter(pl.col("eval_type") == "final")
    return TEXT.format(
        games=int(final["episodes"].to_numpy().max()),
        table=table(rows),
        agents=", ".join(METHODS.values()),
        circumstances=circumstances(rows),
    )


def table(rows: pl.DataFrame) -> str:
    """Format the scores of every run at the moments of the evaluations that are shown."""
    shown = sorted({round(frames, -5) for frames in rows["env_frames"]})[2::3]
    lines = [
        "| agent | seed | " + " | ".join(f"{frames / 1e6:.1f}M" for frames in shown) + " | final |",
        "|---" * (len(shown) + 3) + "|",
    ]
    for method, label in METHODS.items():
        for (seed,), run in rows.filter(pl.col("method") == method).group_by("seed", maintain_order=True):
            light = run.filter(pl.col("eval_type") != "final")
            at = {
                round(frames, -5): mean
                for frames, mean in zip(light["env_frames"], light["mean_return"], strict=True)
            }
            (last,) = run.filter(pl.col("eval_type") == "final")["mean_return"]
            scores = [score(at[frames], 1) if frames in at else "–" for frames in shown]
            lines.append(f"| {label} | {seed} | {' | '.join(scores)} | {score(last, 1)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
