from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from tiny import CPU, begun, run, ticks_of, tiny_spec

from atari_dqn.agent.network import QNetwork
from atari_dqn.assembly.parts import build_network
from atari_dqn.envs.games import game_info, make_envs
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.evaluation import evaluate as evaluation
from atari_dqn.evaluation.checkpoint_score import evaluate_checkpoint
from atari_dqn.evaluation.evaluate import StoppedError, evaluate, evaluation_env
from atari_dqn.evaluation.frozen_agent import load_frozen
from atari_dqn.evaluation.outputs import FeedForwardOutputs
from atari_dqn.evaluation.traces import Tracer
from atari_dqn.run.checkpoint.state_tree import tree_digest
from atari_dqn.run.scores import EvaluationEpisode, EvaluationScore
from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.schema import Spec

ROOT = Path(__file__).parents[2]


def play(spec: Spec, episodes: int, **options) -> tuple[EvaluationEpisode, ...]:
    return evaluate(build_network(spec, game_info(spec), CPU), spec, episodes=episodes, **options)


LONG = ("evaluation.max_episode_frames=2_000", "evaluation.epsilon=0.3")


@pytest.mark.parametrize("envs", [1, 3, 8])
def test_games_are_the_same_however_many_are_played_at_once(envs: int) -> None:
    alone = play(tiny_spec(*LONG, "system.evaluation_envs=2"), 7)
    assert play(tiny_spec(*LONG, f"system.evaluation_envs={envs}"), 7) == alone


@pytest.mark.parametrize(
    ("workers", "used"),
    [(0, 0), *(pytest.param(*each, marks=pytest.mark.slow) for each in ((9, 3), (2, 2)))],
)
def test_games_are_the_same_in_processes_of_their_own(
    workers: int, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = play(tiny_spec(*LONG, "system.evaluation_envs=2"), 5)
    asked: list[int] = []

    def noted(**values):
        asked.append(values["workers"])
        return make_envs(**values)

    monkeypatch.setattr(evaluation, "make_envs", noted)
    spec = tiny_spec(*LONG, "system.evaluation_envs=3", f"system.evaluation_workers={workers}")
    assert play(spec, 5) == alone
    assert asked == [used]


@pytest.mark.slow
def test_games_of_pong_are_the_same_however_many_are_played_at_once() -> None:
    values = ["evaluation.max_episode_frames=100", "evaluation.epsilon=0.3", "env.sticky_probability=0.25"]
    pong = [
        play(load_spec(ROOT / "runs/pong_smoke.toml", [*values, f"system.evaluation_envs={envs}"]).spec, 3)
        for envs in (1, 2)
    ]
    assert pong[0] == pong[1]


def test_light_evaluation_plays_the_first_games_of_a_full_one() -> None:
    assert play(tiny_spec(*LONG), 5)[:2] == play(tiny_spec(*LONG), 2)


def test_games_differ_from_each_other() -> None:
    assert len({(game.episode_return, game.length_frames) for game in play(tiny_spec(*LONG), 6)}) > 2


def test_evaluation_touches_nothing_of_training() -> None:
    spec = tiny_spec()
    with begun(spec) as training:
        ticks_of(training, 100)
        before, stream = tree_digest(training.state_dict()), torch.get_rng_state()
        evaluate(training.learner.online, spec, episodes=3)
        assert tree_digest(training.state_dict()) == before
        assert torch.equal(torch.get_rng_state(), stream)
        assert all(parameter.requires_grad for parameter in training.learner.online.parameters())


def modes_of(network: QNetwork) -> list[tuple[bool, bool]]:
    """Record whether gradients and inference mode are on at each call; fused networks call no hooks."""
    modes: list[tuple[bool, bool]] = []
    distribution = network.distribution

    def noted(*values):
        modes.append((torch.is_grad_enabled(), torch.is_inference_mode_enabled()))
        return distribution(*values)

    network.distribution = noted
    return modes


@pytest.mark.fault("P04")
def test_evaluation_is_in_inference_mode() -> None:
    spec = tiny_spec()
    network = build_network(spec, game_info(spec), CPU)
    modes = modes_of(network)
    evaluate(network, spec, episodes=1)
    assert set(modes) == {(False, True)}


def test_evaluation_with_full_exploration_never_asks_the_network() -> None:
    spec = tiny_spec("evaluation.epsilon=1.0")
    network = build_network(spec, game_info(spec), CPU)
    asked = modes_of(network)
    evaluate(network, spec, episodes=2)
    assert asked == []


STANDING = (
    "game=breakout", "evaluation.max_episode_frames=200", "evaluation.epsilon=0.1",
    "system.evaluation_envs=2",
)  # fmt: skip


def test_game_that_is_unchanged_does_not_ask_the_network_again() -> None:
    spec = load_spec(ROOT / "runs/pong_smoke.toml", [*STANDING, "evaluation.epsilon=0.0"]).spec
    network = build_network(spec, game_info(spec), CPU)
    torch.nn.utils.vector_to_parameters(
        torch.zeros(sum(weight.numel() for weight in network.parameters())), network.parameters()
    )  # the first of equal actions, no-op: nothing fires, and no ball comes
    asked = modes_of(network)
    (game,) = evaluate(network, spec, episodes=1)
    assert game.end_reason == "frame_cap"
    assert 0 < len(asked) <= 10


@pytest.mark.slow
def test_what_is_known_of_a_game_that_is_unchanged_changes_no_decision(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = load_spec(ROOT / "runs/pong_smoke.toml", STANDING).spec
    network = build_network(spec, game_info(spec), CPU)
    remembering, asking = Tracer(), Tracer()
    evaluate(network, spec, episodes=2, tracer=remembering)
    monkeypatch.setattr(FeedForwardOutputs, "_is_unchanged", lambda *_: False)
    evaluate(network, spec, episodes=2, tracer=asking)
    for game in range(2):
        assert np.array_equal(remembering.trace(game).values, asking.trace(game).values)


def test_stop_ends_an_evaluation_with_an_error_of_its_own() -> None:
    with pytest.raises(StoppedError):
        play(tiny_spec(), 2, stop=lambda: True)


def test_progress_is_reported_up_to_the_last_episode() -> None:
    reported: list[tuple[int, int]] = []
    play(tiny_spec(), 3, on_progress=lambda *done: reported.append(done))
    assert reported[-1] == (3, 3)
    assert [done for done, _ in reported] == sorted(done for done, _ in reported)


@pytest.mark.fault("D12")
def test_episode_that_reaches_the_cap_says_so_and_has_its_length() -> None:
    games = play(tiny_spec("evaluation.max_episode_frames=40", "env.noop_max_frames=0"), 3)
    assert [(game.end_reason, game.length_frames) for game in games] == [("frame_cap", 40)] * 3


@pytest.mark.fault("D12")
def test_episode_that_the_game_ends_says_so() -> None:
    # three balls of 23 frames missed at the soonest
    games = play(tiny_spec("evaluation.max_episode_frames=2_000", "env.noop_max_frames=0"), 3)
    assert {game.end_reason for game in games} == {"game_over"}
    assert all(69 <= game.length_frames <= 232 for game in games)


@pytest.mark.fault("D-ok.lives")
def test_life_loss_ends_no_evaluation_episode() -> None:
    # a game of Catch takes three lost lives, each after 23 frames at the soonest, no-op frames included
    games = [play(tiny_spec(*LONG, f"env.terminal_on_life_loss={value}"), 5) for value in ("true", "false")]
    assert games[0] == games[1]
    assert all(game.length_frames > 3 * 23 - 31 for game in games[0])


def test_evaluation_has_a_cap_of_its_own_and_the_trainings_game() -> None:
    env = evaluation_env(tiny_spec("env.sticky_probability=0.25"))
    assert (env.max_episode_frames, env.sticky_probability) == (120, 0.25)


def test_step_of_an_evaluation_does_not_end_at_a_lost_life() -> None:
    assert evaluation_env(tiny_spec("env.life_loss_ends_skip=true")).life_loss_ends_skip is False


def test_scores_are_not_clipped() -> None:
    # rewards are clipped to ±0.001 in training; a ball is worth 1
    games = play(tiny_spec(*LONG, "learner.max_abs_reward=0.001"), 4)
    assert all(game.episode_return == round(game.episode_return) for game in games)
    assert any(game.episode_return for game in games)


def test_score_of_four_games() -> None:
    score = EvaluationScore(
        returns=(1.0, 2.0, 3.0, 10.0), lengths_frames=(4, 8, 8, 20),
        end_reasons=("game_over", "frame_cap", "game_over", "game_over"),
    )  # fmt: skip
    assert score.row() == {
        "episodes": 4, "mean_return": 4.0, "std_return": pytest.approx(np.sqrt(50 / 3)), "median_return": 2.5,
        "min_return": 1.0, "max_return": 10.0, "mean_length_frames": 10.0, "min_length_frames": 4,
        "max_length_frames": 20, "game_overs": 3, "frame_caps": 1,
    }  # fmt: skip


def test_spread_of_a_single_game_is_unknown() -> None:
    score = EvaluationScore(returns=(1.0,), lengths_frames=(4,), end_reasons=("game_over",))
    assert np.isnan(score.std_return)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has ended."""
    path = tmp_path_factory.mktemp("outputs") / "tiny_catch"
    run(path, "training.total_frames=640", "checkpoint.keep_last=3", "evaluation.full_period_frames=400")
    return path


def test_score_of_a_run_on_disk_is_the_last_row_of_its_eval_log(finished: Path) -> None:
    row = pl.read_csv(finished / "eval_log.csv").row(-1, named=True)
    agent = load_frozen(finished, CPU)
    found = evaluate_checkpoint(agent)
    assert row["eval_type"] == "final"
    assert {name: row[name] for name in found.score.row()} == pytest.approx(found.score.row(), nan_ok=True)
    assert (agent.step, agent.env_frames, found.protocol.digest()) == (
        row["step"], row["env_frames"], row["protocol"],
    )  # fmt: skip


def test_score_of_an_older_checkpoint_is_its_own_row_of_eval_log(finished: Path) -> None:
    row = pl.read_csv(finished / "eval_log.csv").filter(eval_type="full").row(0, named=True)
    path = finished / "checkpoints" / f"step_{row['step']:09d}"
    found = evaluate_checkpoint(load_frozen(path, CPU))
    assert (found.score.mean_return, found.score.row()["mean_length_frames"]) == (
        row["mean_return"], row["mean_length_frames"],
    )  # fmt: skip


@pytest.mark.parametrize(("name", "choice"), [("latest", "last"), ("best", "best")])
def test_protocol_tells_which_weights_played(finished: Path, name: str, choice: str) -> None:
    found = evaluate_checkpoint(load_frozen(finished / "checkpoints" / name, CPU), episodes=1)
    assert (found.protocol.checkpoint, found.protocol.episodes) == (choice, 1)


def test_folder_that_is_no_run_is_a_users_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is not a run directory"):
        load_frozen(tmp_path, CPU)


def test_damaged_weights_are_not_played(finished: Path) -> None:
    agent = finished / "checkpoints" / "latest" / "agent.pt"
    whole = agent.read_bytes()
    agent.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(DamagedError, match=r"agent\.pt"):
        load_frozen(finished, CPU)
    agent.write_bytes(whole)
