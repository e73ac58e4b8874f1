"""`dqn eval` where its score cannot be stored."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import CommandServer

from atari_dqn.cli.eval import _human_normalised
from atari_dqn.envs.games import game_info
from atari_dqn.evaluation.checkpoint_score import checkpoint_score
from atari_dqn.run.scores import EvaluationEpisode
from atari_dqn.spec.loader import load_spec


@pytest.fixture
def unwritable(tiny_run: Callable[..., Path], tmp_path: Path) -> Path:
    """A run with a file in the place of the folder of scores."""
    path = Path(shutil.copytree(tiny_run(), tmp_path / "run", symlinks=True))
    (path / "evaluations").write_text("")
    return path


def test_the_remedy_for_a_run_that_cannot_be_written_is_an_option_of_the_command(
    unwritable: Path, command_server: CommandServer
) -> None:
    done = command_server.run("eval", unwritable)
    assert (done.code, done.err) == (
        2,
        f"error: cannot write {unwritable}/evaluations: file exists; "
        "with --no-save the games are played and the score is only printed\n",
    )


@pytest.mark.parametrize("place", [".", "checkpoints/best"])
def test_paths_of_a_score_are_relative_if_the_one_of_the_agent_is(
    tiny_run: Callable[..., Path], tmp_path: Path, command_server: CommandServer, place: str
) -> None:
    shutil.copytree(tiny_run(), tmp_path / "runs" / "mine", symlinks=True)
    done = command_server.run("eval", f"runs/mine/{place}", "--episodes", "1", cwd=tmp_path)
    assert done.code == 0
    first, *_, last = done.out.splitlines()
    assert first.startswith("runs/mine/checkpoints/step_000000")
    assert last.startswith("  kept in  runs/mine/evaluations/step_000000")


def test_without_a_place_for_the_score_the_games_are_played(
    unwritable: Path, command_server: CommandServer
) -> None:
    done = command_server.run("eval", unwritable, "--no-save", "--episodes", "1")
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize("end_reason", ["game_over", "frame_cap"])
def test_score_of_frames_that_flicker_is_of_another_game(end_reason: str) -> None:
    spec = load_spec(Path("pong_trackA"), ["env.flicker_probability=0.5"]).spec
    games = [EvaluationEpisode(episode_return=3.0, length_frames=18_000, end_reason=end_reason)]
    score = checkpoint_score(spec, "run", games, checkpoint="last", info=game_info(spec))
    assert _human_normalised(score) == "not normalised: frames flicker, which is another game"
