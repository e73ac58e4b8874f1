"""A score, a video or a recording is of weights, not of a step: others at the same step do not get it."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from exported import export
from tiny import CPU

import atari_dqn as dqn
from atari_dqn.errors import UserError
from atari_dqn.evaluation.checkpoint_score import evaluate_checkpoint, save_score
from atari_dqn.evaluation.export import newest_video
from atari_dqn.evaluation.frozen_agent import FrozenAgent, load_frozen
from atari_dqn.record.checkpoint_recording import newest_recording, record_checkpoint
from atari_dqn.record.recording import (
    Recording,
    VideoOptions,
    load_recording,
    recording_bytes,
    save_recording,
)
from atari_dqn.run.archive.archive import read_archive
from atari_dqn.run.archive.hub import card
from atari_dqn.run.recorded_scores import scores_of

STEP = 300


@pytest.fixture
def mine(tiny_run: Callable[..., Path], tmp_path: Path) -> Path:
    """A copy of the tiny run, which ends at step 300."""
    path = Path(shutil.copytree(tiny_run(), tmp_path / "run", symlinks=True))
    (path / "evaluations").mkdir()
    (path / "videos").mkdir()
    return path


def other_weights(path: Path) -> FrozenAgent:
    """The agent of a run with weights that another training would have had at its step."""
    agent = load_frozen(path, CPU)
    for weight in agent.network.parameters():
        weight.data += 1
    return agent


def evaluated(agent: FrozenAgent, episodes: int) -> Path:
    return save_score(agent, evaluate_checkpoint(agent, episodes=episodes)).path


def games_by_eval(path: Path) -> list[int]:
    """The number of games of each score by `dqn eval`."""
    return [len(score.returns or ()) for score in scores_of(path) if score.kind == "eval"]


def recorded(agent: FrozenAgent, stem: str, *, mtime: int) -> Recording:
    """Record a game of an agent, with a video of it that is as old as `mtime` says."""
    recording = record_checkpoint(agent, options=VideoOptions(scale=2), on_progress=lambda *_: None)
    path = agent.run.videos / f"{stem}.json"
    save_recording(recording, path)
    path.with_suffix(".mp4").write_bytes(b"frames")
    for each in (path, path.with_suffix(".mp4")):
        os.utime(each, (mtime, mtime))
    return recording


def test_score_has_the_digest_of_its_weights(mine: Path) -> None:
    agent = load_frozen(mine, CPU)
    document = json.loads(evaluated(agent, 2).read_text())
    found = [score.weights_sha256 for score in scores_of(mine)]
    assert document["weights_sha256"] == agent.weights_sha256 != other_weights(mine).weights_sha256
    assert found == [None, None, None, None, agent.weights_sha256]


def test_score_of_other_weights_that_the_run_had_at_a_step_is_left_out(mine: Path) -> None:
    evaluated(other_weights(mine), 3)
    evaluated(load_frozen(mine, CPU), 2)
    assert games_by_eval(mine) == [2]


def test_score_of_a_removed_checkpoint_stays(mine: Path) -> None:
    evaluated(load_frozen(mine / "checkpoints/step_000000150", CPU), 2)
    shutil.rmtree(mine / "checkpoints/step_000000150")
    assert games_by_eval(mine) == [2]


def without_digests(path: Path, **changes: object) -> None:
    """Make a score as earlier versions wrote it, with some changes."""
    document = json.loads(path.read_text())
    for name in ("weights_sha256", "score_sha256"):
        document.pop(name, None)
    path.write_text(json.dumps({**document, **changes}))


def test_score_of_an_earlier_version_is_read_by_its_step(mine: Path) -> None:
    without_digests(evaluated(load_frozen(mine, CPU), 2))
    found = [score for score in scores_of(mine) if score.kind == "eval"]
    assert [(score.step, score.weights_sha256) for score in found] == [(STEP, None)]


@pytest.mark.parametrize("changes", [{"seed": 2}, {"game": "pong"}], ids=str)
def test_score_of_an_earlier_version_of_another_run_is_left_out(
    mine: Path, changes: dict[str, object]
) -> None:
    without_digests(evaluated(load_frozen(mine, CPU), 2), **changes)
    assert games_by_eval(mine) == []


def archived(agent: FrozenAgent, path: Path) -> FrozenAgent:
    """Export an agent in place of an earlier archive, and return it as loaded from there."""
    path.unlink(missing_ok=True)
    export(agent, path)
    return load_frozen(path, CPU)


def test_archive_of_other_weights_does_not_get_the_scores_of_the_one_before(
    mine: Path, tmp_path: Path
) -> None:
    path = tmp_path / "catch.dqn"
    first = archived(load_frozen(mine, CPU), path)
    first.run.evaluations.mkdir(parents=True)
    evaluated(first, 7)
    assert games_by_eval(path) == [7]
    archived(other_weights(mine), path)
    assert games_by_eval(path) == []
    assert dqn.load(path).scores == dqn.Run(path).scores
    assert "| 7 |" not in card(read_archive(path), scores_of(path))


def test_archive_of_another_step_does_not_get_earlier_versions_scores_of_the_one_before(
    mine: Path, tmp_path: Path
) -> None:
    path = tmp_path / "catch.dqn"
    first = archived(load_frozen(mine / "checkpoints/step_000000150", CPU), path)
    first.run.evaluations.mkdir(parents=True)
    without_digests(evaluated(first, 7))
    assert games_by_eval(path) == [7]
    archived(load_frozen(mine, CPU), path)
    assert games_by_eval(path) == []


def test_newest_video_and_recording_are_of_these_weights(mine: Path) -> None:
    agent = load_frozen(mine, CPU)
    recorded(agent, "step_000000300_run", mtime=1)
    recorded(other_weights(mine), "step_000000300_run_2", mtime=2)
    assert newest_video(agent) == mine / "videos/step_000000300_run.mp4"
    assert newest_recording(agent).source.weights_sha256 == agent.weights_sha256


def test_recording_of_other_weights_alone_is_none_of_these(mine: Path) -> None:
    recorded(other_weights(mine), "step_000000300_run", mtime=1)
    agent = load_frozen(mine, CPU)
    assert newest_video(agent) is None
    with pytest.raises(UserError, match=r"no game of these weights \(step 300\) is recorded"):
        newest_recording(agent)


def test_video_without_a_recording_is_none_of_these(mine: Path) -> None:
    agent = load_frozen(mine, CPU)
    recorded(agent, "step_000000300_run", mtime=1)
    (mine / "videos/step_000000300_run_2.mp4").write_bytes(b"frames of any weights")
    assert newest_video(agent) == mine / "videos/step_000000300_run.mp4"


@pytest.mark.parametrize(("seed", "found"), [(1, True), (2, False)])
def test_recording_of_an_earlier_version_is_found_by_seed_and_step(
    mine: Path, seed: int, found: bool
) -> None:
    agent = load_frozen(mine, CPU)
    new = recorded(agent, "step_000000300_run", mtime=1)
    path = mine / "videos/step_000000300_run.json"
    path.unlink()
    save_recording(replace(new, seed=seed, source=replace(new.source, weights_sha256=None)), path)
    assert "weights_sha256" not in path.read_text()
    assert recording_bytes(load_recording(path)) == path.read_bytes()
    assert (newest_video(agent) is not None) is found


def test_recording_of_an_archive_names_the_archive(mine: Path, tmp_path: Path) -> None:
    agent = archived(load_frozen(mine, CPU), tmp_path / "catch.dqn")
    agent.run.videos.mkdir(parents=True)
    assert recorded(agent, "step_000000300_run", mtime=1).source.checkpoint == "catch.dqn"


def test_recording_of_a_run_names_the_run_and_the_checkpoint(mine: Path) -> None:
    found = recorded(load_frozen(mine, CPU), "step_000000300_run", mtime=1).source.checkpoint
    assert found == "run/checkpoints/step_000000300"


def test_same_score_is_saved_once(mine: Path) -> None:
    agent = load_frozen(mine, CPU)
    result = evaluate_checkpoint(agent, episodes=2)
    first, second = (save_score(agent, result) for _ in range(2))
    assert (first.kept_before, second.kept_before) == (False, True)
    assert second.path == first.path
    assert games_by_eval(mine) == [2]


def test_score_of_other_games_is_saved_next_to_the_first(mine: Path) -> None:
    agent = load_frozen(mine, CPU)
    result = evaluate_checkpoint(agent, episodes=2)
    other = replace(result, score=replace(result.score, returns=(7.0, 7.0)))
    first, second = save_score(agent, result), save_score(agent, other)
    assert (second.kept_before, second.path.name) == (False, f"{first.path.stem}_2.json")


def test_score_of_the_same_games_by_other_weights_is_saved_next_to_the_first(mine: Path) -> None:
    agent = load_frozen(mine, CPU)
    result = evaluate_checkpoint(agent, episodes=2)
    first, second = save_score(other_weights(mine), result), save_score(agent, result)
    assert (second.kept_before, second.path.name) == (False, f"{first.path.stem}_2.json")


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_score_is_saved_next_to_a_file_that_is_none(mine: Path, text: str) -> None:
    agent = load_frozen(mine, CPU)
    result = evaluate_checkpoint(agent, episodes=2)
    first = save_score(agent, result).path
    first.write_text(text)
    assert save_score(agent, result) == (first.with_stem(f"{first.stem}_2"), False)
