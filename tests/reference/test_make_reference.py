"""The scripts that read nnabla-rl's evaluations and make the tables of published figures."""

import sys
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

sys.path.append(str(Path(__file__).parents[2] / "scripts"))
import nnabla_rl_evaluations as nnabla_rl
from make_reference import (
    atari_100k,
    best_of_track_a,
    papers,
    sticky,
    sticky_between_milestones,
    track_a,
    track_a_between_milestones,
)

HEADER = "iteration\tmean\tstd_dev\tmin\tmax\tmedian"
COLUMNS = ("study", "agent", "game", "env_frames", "mean", "lowest", "highest", "n")


def add_run(clone: Path, folder: str, game: str, seed: int, rows: Sequence[tuple[int, float]]) -> None:
    """Add a run of nnabla-rl with the mean of an evaluation after each number of iterations."""
    place = clone / "reproductions/algorithms/atari" / folder / "reproduction_results"
    run = place / f"{game}NoFrameskip-v4_results" / f"seed-{seed}"
    run.mkdir(parents=True)
    lines = [f"{iteration}\t{mean}\t0.5\t-3.0\t9.0\t{mean + 1}" for iteration, mean in rows]
    (run / "evaluation_result_scalar.tsv").write_text("\n".join([HEADER, *lines]))


def figures(table: pl.DataFrame) -> list[tuple[object, ...]]:
    return table.select(COLUMNS).sort(COLUMNS).rows()


def test_iteration_of_nnabla_rl_is_four_emulator_frames(tmp_path: Path) -> None:
    add_run(tmp_path, "dqn", "Pong", 10, [(250_000, 2.0), (500_000, 3.0)])
    assert nnabla_rl.evaluations(tmp_path, "dqn").rows(named=True)[1] == {
        "agent": "dqn", "game": "pong", "seed": 10, "env_frames": 2_000_000, "mean_return": 3.0,
        "std_return": 0.5, "median_return": 4.0, "min_return": -3.0, "max_return": 9.0,
    }  # fmt: skip


def test_first_of_two_evaluations_after_the_same_frames_counts(tmp_path: Path) -> None:
    add_run(tmp_path, "dqn", "Pong", 1, [(250_000, 2.0), (500_000, 3.0), (250_000, 7.0)])
    assert nnabla_rl.evaluations(tmp_path, "dqn")["mean_return"].to_list() == [2.0, 3.0]


@pytest.mark.parametrize(
    ("gym", "rom"), [("UpNDown", "up_n_down"), ("Qbert", "qbert"), ("NameThisGame", "name_this_game")]
)
def test_game_of_nnabla_rl_has_the_name_of_its_rom(tmp_path: Path, gym: str, rom: str) -> None:
    add_run(tmp_path, "ddqn", gym, 1, [(250_000, 2.0)])
    assert nnabla_rl.evaluations(tmp_path, "double_dqn")["game"].to_list() == [rom]


def test_clone_without_evaluations_is_an_error_that_names_the_folder(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="munchausen_iqn/reproduction_results: no evaluations"):
        nnabla_rl.evaluations(tmp_path, "m_iqn")


def test_evaluations_of_two_games_up_to_twelve_million_frames_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for game in ("Pong", "Breakout", "Alien"):
        add_run(tmp_path, "dqn", game, 1, [(3_000_000, 2.0), (3_250_000, 3.0)])
    monkeypatch.setattr(nnabla_rl, "PUBLISHED", tmp_path / "published.csv")
    monkeypatch.setattr(sys, "argv", ["nnabla_rl_evaluations.py", str(tmp_path)])
    nnabla_rl.main()
    kept = pl.read_csv(tmp_path / "published.csv")
    assert kept.select("game", "env_frames").rows() == [("breakout", 12_000_000), ("pong", 12_000_000)]


def add_every_agent(clone: Path, millions: Sequence[int]) -> None:
    """Add three seeds of each agent on Pong, of which two score two points more than the first."""
    for folder in nnabla_rl.ALGORITHMS.values():
        for seed, score in ((1, 5.0), (10, 7.0), (100, 7.0)):
            add_run(clone, folder, "Pong", seed, [(250_000 * each, score) for each in millions])


def test_figure_between_milestones_is_mean_lowest_and_highest_over_seeds(tmp_path: Path) -> None:
    add_every_agent(tmp_path, [2, 3])
    assert ("nnabla_dqn", "dqn", "pong", 3_000_000, 6.333, 5.0, 7.0, 3) in figures(
        track_a_between_milestones(tmp_path)
    )


def test_figures_of_nnabla_rl_between_milestones_are_those_below_ten_million_frames(tmp_path: Path) -> None:
    add_every_agent(tmp_path, range(1, 13))
    frames = track_a_between_milestones(tmp_path)["env_frames"]
    assert sorted(set(frames)) == [1_000_000 * each for each in (3, 4, 6, 7, 8, 9)]


def test_agents_of_nnabla_rl_are_of_the_study_with_their_protocol(tmp_path: Path) -> None:
    add_every_agent(tmp_path, [3])
    found = track_a_between_milestones(tmp_path).select("study", "agent").unique().sort("agent").rows()
    assert found == [
        ("nnabla_distributional", "c51"),
        ("nnabla_dqn", "double_dqn"),
        ("nnabla_dqn", "dqn"),
        ("nnabla_distributional", "iqn"),
        ("nnabla_distributional", "m_dqn"),
        ("nnabla_distributional", "m_iqn"),
        ("nnabla_distributional", "qr_dqn"),
        ("nnabla_rainbow", "rainbow"),
    ]


def csv(folder: Path, name: str, header: str, *rows: str) -> None:
    (folder / f"{name}.csv").write_text("\n".join([header, *rows]))


def test_figures_of_milestones_are_over_seeds_and_without_recurrent_networks(tmp_path: Path) -> None:
    csv(
        tmp_path, "curves_track_a", "game,agent,seed,frames,eval_mean_return,n_evals",
        "pong,dqn,1,5000000,4.0,1", "pong,dqn,2,5000000,9.5,1", "pong,dqn,1,6000000,50.0,1",
        "pong,drqn_flicker,1,5000000,60.0,1",
    )  # fmt: skip
    assert figures(track_a(tmp_path)) == [("nnabla_dqn", "dqn", "pong", 5_000_000, 6.75, 4.0, 9.5, 2)]


def test_best_evaluation_of_a_run_is_a_figure_of_its_whole_budget(tmp_path: Path) -> None:
    csv(
        tmp_path, "best_track_a", "game,agent,seed,best_frames,best_mean_return,std_episodes",
        "pong,c51,1,189000000,20.0,1.0", "pong,c51,2,3000000,18.0,1.0", "pong,drqn,1,3000000,30.0,1.0",
    )  # fmt: skip
    assert figures(best_of_track_a(tmp_path)) == [
        ("nnabla_best_distributional", "c51", "pong", 200_000_000, 19.0, 18.0, 20.0, 2)
    ]


def test_figures_of_dopamine_are_of_their_codebase_and_network(tmp_path: Path) -> None:
    header = "game,agent,codebase,seed,frames,train_mean_return"
    rows = ("pong,dqn,jax,0,1000000,4.0", "pong,dqn,jax,1,1000000,6.0", "pong,dqn,jax,1,3000000,9.0")
    csv(tmp_path, "curves_sticky", header, *rows)
    csv(tmp_path, "curves_sticky_extra", header, "pong,rainbow_impala,jax,0,1000000,8.0")
    assert figures(sticky(tmp_path)) == [
        ("dopamine_jax", "dqn", "pong", 1_000_000, 5.0, 4.0, 6.0, 2),
        ("dopamine_jax_impala", "rainbow", "pong", 1_000_000, 8.0, 8.0, 8.0, 1),
    ]


def test_first_iteration_of_dopamine_ends_after_a_million_frames(tmp_path: Path) -> None:
    folder = tmp_path / "baselines/atari/data"
    folder.mkdir(parents=True)
    rows = [f'{{"Agent": "DQN", "Iteration": {each}, "Value": {each}.5}}' for each in range(5)]
    (folder / "pong.json").write_text(f"[{','.join(rows)}]")
    found = [(frames, mean) for _, _, _, frames, mean, *_ in figures(sticky_between_milestones(tmp_path))]
    assert found == [(3_000_000, 2.5), (4_000_000, 3.5)]


def test_scores_from_human_starts_are_no_figures_of_papers(tmp_path: Path) -> None:
    paper = "van Hasselt et al. 2016 (1509.06461)"
    csv(
        tmp_path, "paper_scores", "game,agent,variant,frames,starts,score,paper,n_sources",
        f"pong,double_dqn,,200000000,noop,21.0,{paper},2", f"pong,double_dqn,,200000000,human,19.0,{paper},2",
        f"pong,dqn,own_5min,200000000,noop,18.0,{paper},3",
        "pong,dueling,rank,200000000,noop,20.9,Wang et al. 2016 (1511.06581) Table 2,1",
    )  # fmt: skip
    assert figures(papers(tmp_path)) == [
        ("hasselt2016", "double_dqn", "pong", 200_000_000, 21.0, None, None, 1),
        ("hasselt2016", "dqn", "pong", 200_000_000, 18.0, None, None, 1),
        ("wang2016", "rank_dueling", "pong", 200_000_000, 20.9, None, None, 1),
    ]


def test_column_of_atari_100k_that_was_recalled_is_a_study_of_its_own(tmp_path: Path) -> None:
    csv(
        tmp_path, "atari100k", "game,agent,score,runs,status",
        "pong,human,14.6,,sourced_2", "pong,der_agarwal2021,-10.0,,recalled_aggregate_checked",
        "pong,curl_agarwal2021,-17.8,100,raw_runs",
    )  # fmt: skip
    assert figures(atari_100k(tmp_path)) == [
        ("atari_100k", "curl_agarwal2021", "pong", 400_000, -17.8, None, None, 100),
        ("atari_100k_recalled", "der_agarwal2021", "pong", 400_000, -10.0, None, None, None),
    ]
