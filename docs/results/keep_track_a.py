"""Keep runs of Track A and make their page: evaluations next to published ones, by frames, and the updates.

The runs are those of the sweeps `track_a_10m` and `track_a_init`, and those of `COMMANDS` in
`track_a_text.py`, most of which have the loss of `track_a/doubled_loss`. The tables are those of `gather.py`,
in `track_a/`, and `updates.csv`, means of the update log; the published figures come with the package, and
those of each seed, `published.csv`, are made by scripts/nnabla_rl_evaluations.py. Runs that are not finished
are kept as far as they have come; those without an evaluation are named and left out.

python docs/results/keep_track_a.py outputs/track_a_10m/trackA_pong_seed1       keep runs, make the page
python docs/results/keep_track_a.py                                             make the page again
"""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
import polars as pl
from gather import add, by_name, gather, named, origin, trained
from keep import WINDOW_EPISODES, read
from keep_pqn import RESULTS, runs_of
from track_a_page import PLOT, UPDATES_FRAMES, TrackARun, games_of, page

KEPT, PAGE = Path("track_a"), Path("track_a.md")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="*", type=Path, help="run directories")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.runs:
        keep(options.runs, options.out / KEPT)
    runs = kept_runs(options.out)
    draw(runs, options.out / PLOT)
    text = page(runs, kept_updates(options.out))
    (options.out / PAGE).write_text(text, encoding="utf-8")
    print(text)


def keep(runs: list[Path], folder: Path) -> None:
    """Add the runs that have an evaluation to the tables of a folder."""
    evaluated = [run for run in runs if len(read(run, "eval_log"))]
    for run in set(runs) - set(evaluated):
        print(f"{run}: not evaluated yet; left out")
    if not evaluated:
        raise SystemExit("no evaluated run")
    gather(folder, by_name(evaluated))
    (folder / "predictions.csv").unlink()  # no page needs them
    add(
        folder / "runs.csv",
        [
            pl.DataFrame([{**origin(run.name, run), **trained(run), "resize": resize_of(run)}])
            for run in evaluated
        ],
    )
    add(folder / "updates.csv", [updates(run).select(named(run.name), pl.all()) for run in evaluated])


def resize_of(run: Path) -> str:
    """Read how a run resizes frames."""
    resize: str = tomllib.loads((run / "spec.toml").read_text())["env"]["resize"]
    return resize


def updates(run: Path) -> pl.DataFrame:
    """Return the loss and the gradient's norm of a run, means over intervals of frames, by their ends."""
    log = read(run, "update_log").drop_nulls("loss")
    end = (pl.col("env_frames") / UPDATES_FRAMES).ceil().cast(pl.Int64) * UPDATES_FRAMES
    means = pl.col("loss", "grad_norm").mean().round_sig_figs(6)
    return log.group_by(end.alias("env_frames"), maintain_order=True).agg(means)


def kept_runs(results: Path) -> list[TrackARun]:
    """Return the kept runs in the page's order."""
    found = [TrackARun(**vars(run)) for run in runs_of(results / KEPT)]
    return sorted(found, key=lambda run: run.place)


def kept_updates(results: Path) -> pl.DataFrame:
    """Return the means of the kept runs' update logs."""
    return pl.read_csv(results / KEPT / "updates.csv")


def published_seeds(kept: Path, game: str) -> pl.DataFrame:
    """Return nnabla-rl's evaluations of a game, a row for each of a seed."""
    return pl.read_csv(kept / "published.csv").filter(pl.col("game") == game)


def draw(runs: list[TrackARun], path: Path) -> None:
    """Draw evaluations and the mean of the last training games, a panel for each game."""
    games, labels = games_of(runs), [*dict.fromkeys(run.label for run in runs)]
    figure, places = plt.subplots(
        1, len(games), figsize=(5.5 * len(games), 6), layout="constrained", squeeze=False
    )
    for place, game in zip(places[0], games, strict=True):
        for _, rows in published_seeds(path.parent, game).group_by("seed", maintain_order=True):
            curve = rows["env_frames"] * 1e-6, rows["mean_return"]
            place.plot(*curve, color="0.4", linewidth=1, marker=".", label="nnabla-rl, each of 3 seeds")
        own = [run for run in runs if run.game == game]
        for run in own:
            color = labels.index(run.label)  # of a label the same in every panel
            mean = run.games["episode_return"].rolling_mean(WINDOW_EPISODES)
            place.plot(run.games["env_frames"] * 1e-6, mean, color=f"C{color}", alpha=0.4)
            evaluated = run.evaluations["env_frames"] * 1e-6, run.evaluations["mean_return"]
            place.plot(*evaluated, "o", color=f"C{color}", markersize=4, label=f"here, {run.label}")
        place.set_title(game)
        place.set_xlabel("emulator frames (millions)")
        place.grid(alpha=0.3)
    places[0][0].set_ylabel(f"return; lines: mean of the last {WINDOW_EPISODES} training games")
    every = [place.get_legend_handles_labels() for place in places[0]]
    by_label = {label: handle for found in every for handle, label in zip(*found, strict=True)}
    figure.legend(by_label.values(), by_label, loc="outside lower center", fontsize="small")
    figure.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
