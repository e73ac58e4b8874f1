"""`dqn eval` scores a checkpoint under any protocol, and saves the score in the run directory."""

import json
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
from tiny import CPU, FEW_STEPS, run, tiny_spec

from atari_dqn.cli.app import main
from atari_dqn.compare.reference.studies import human_random
from atari_dqn.errors import DamagedError
from atari_dqn.evaluation import frozen_agent as frozen
from atari_dqn.evaluation.checkpoint_score import CheckpointScore, evaluate_checkpoint
from atari_dqn.evaluation.frozen_agent import load_frozen
from atari_dqn.evaluation.progress import EvaluationProgress
from atari_dqn.run.checkpoint.state_files import read_agent
from atari_dqn.run.checkpoint.state_tree import tree_digest
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.scores import EvaluationEpisode, EvaluationScore
from atari_dqn.spec.keys import flatten
from atari_dqn.spec.named_protocols import PROTOCOL_KEYS, with_protocol
from atari_dqn.spec.protocol import evaluation_protocol
from atari_dqn.verify.checks import check_run

SHORT = ("training.total_frames=400", "evaluation.full_period_frames=9999", "evaluation.full_episodes=9")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("outputs") / "tiny_catch"
    run(path, *SHORT)
    return path


@pytest.fixture
def mine(finished: Path, tmp_path: Path) -> Path:
    """A copy that a test may write into."""
    shutil.copytree(finished, tmp_path / "run", symlinks=True)
    return tmp_path / "run"


def dqn(*arguments: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["dqn", *arguments])
        try:
            main()
        except SystemExit as ended:
            return int(str(ended.code))
    return 0


@pytest.mark.parametrize("envs", [1, 4, 8])
def test_score_is_the_runs_own_with_any_number_of_envs(finished: Path, envs: int) -> None:
    row = pl.read_csv(finished / "eval_log.csv").row(-1, named=True)
    events = [json.loads(line) for line in (finished / "events.jsonl").read_text().splitlines()]
    own = [event["data"] for event in events if event["kind"] == "evaluation"][-1]
    found = evaluate_checkpoint(load_frozen(finished, CPU), envs=envs)
    assert list(found.score.returns) == own["returns"]
    assert list(found.score.lengths_frames) == own["lengths_frames"]
    assert found.protocol.digest() == row["protocol"]


def test_network_that_acts_is_loaded(tmp_path: Path) -> None:
    averaged = ("learner.target_period_updates=1", "learner.target_rate=0.1", "learner.acting_network=target")
    run(tmp_path / "run", *FEW_STEPS, *averaged)
    agent = load_frozen(tmp_path / "run", CPU)
    saved = read_agent(agent.checkpoint)
    assert tree_digest(dict(agent.network.state_dict())) == tree_digest(saved["target"])
    assert tree_digest(saved["online"]) != tree_digest(saved["target"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("run", (0.05, 0.0, 30, 120)),
        ("classic", (0.05, 0.0, 30, 18_000)),
        ("modern", (0.001, 0.25, 0, 108_000)),
    ],
)
def test_protocol_by_name(name: str, expected: tuple[float, ...]) -> None:
    spec = with_protocol(tiny_spec(), name)
    assert (
        spec.evaluation.epsilon, spec.env.sticky_probability, spec.env.noop_max_frames,
        spec.evaluation.max_episode_frames,
    ) == expected  # fmt: skip


def test_protocol_changes_nothing_of_the_agent() -> None:
    before, after = flatten(tiny_spec()), flatten(with_protocol(tiny_spec(), "modern"))
    assert {key for key in before if before[key] != after[key]} == set(PROTOCOL_KEYS)
    assert not any(key.startswith(("network", "learner", "optimizer")) for key in PROTOCOL_KEYS)


def test_both_protocols_are_two_scores_that_each_name_theirs(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dqn("eval", str(mine), "--protocol", "both", "--episodes", "2", "--json") == 0
    classic, modern = json.loads(capsys.readouterr().out)["scores"]
    assert (classic["protocol_name"], modern["protocol_name"]) == ("classic", "modern")
    assert [score["protocol"]["sticky_probability"] for score in (classic, modern)] == [0.0, 0.25]
    assert classic["protocol_digest"] != modern["protocol_digest"]


def test_score_that_is_measured_again_is_kept_once(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dqn("eval", str(mine), "--episodes", "2") == 0
    (path,) = (mine / "evaluations").iterdir()
    assert capsys.readouterr().out.endswith(f"\n  kept in  {path}\n")
    before = path.read_bytes()
    assert dqn("eval", str(mine), "--episodes", "2") == 0
    assert capsys.readouterr().out.endswith(f"\n  kept in  {path}, where it was already\n")
    assert [each.read_bytes() for each in (mine / "evaluations").iterdir()] == [before]


def test_saved_score_has_the_steps_and_the_frames_of_training(mine: Path) -> None:
    assert dqn("eval", str(mine), "--episodes", "1") == 0
    (path,) = (mine / "evaluations").iterdir()
    document = json.loads(path.read_text())
    assert (document["step"], document["env_frames"]) == (100, 400)


def test_no_save_writes_nothing(mine: Path) -> None:
    before = sorted(mine.rglob("*"))
    assert dqn("eval", str(mine), "--episodes", "1", "--no-save") == 0
    assert sorted(mine.rglob("*")) == before


def test_run_that_cannot_be_written_to_is_said_before_anything_is_played(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (mine / "evaluations").write_text("a file of the user's")
    assert dqn("eval", str(mine)) == 2
    assert f"cannot write {mine / 'evaluations'}" in capsys.readouterr().err


def test_text_says_how_games_ended_and_under_what_fingerprint(
    mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dqn("eval", str(mine), "--episodes", "3", "--no-save") == 0
    digest = evaluate_checkpoint(load_frozen(mine, CPU), episodes=3).protocol.digest()
    text = capsys.readouterr().out
    assert f"fingerprint {digest}" in text
    assert "by the game" in text
    assert "by the cap" in text


def test_human_normalised_score_names_its_table() -> None:
    score = EvaluationScore(returns=(10.0,), lengths_frames=(4,), end_reasons=("game_over",))
    protocol = evaluation_protocol(
        tiny_spec(),
        episodes=1,
        checkpoint="last",
        ale_version="0.12.1",
        rom_md5="",
    )
    pong = CheckpointScore(name="run", score=score, protocol=protocol, reference=human_random("pong"))
    assert pong.reference is not None
    assert pong.reference.table == "atari57"
    assert pong.human_normalised == pytest.approx((10 + 20.7) / (14.6 + 20.7))


@pytest.mark.fault("H07")
def test_score_of_games_cut_at_no_published_length_is_not_human_normalised() -> None:
    score = EvaluationScore(returns=(-6.0,), lengths_frames=(120,), end_reasons=("frame_cap",))
    protocol = evaluation_protocol(
        tiny_spec(), episodes=1, checkpoint="last", ale_version="0.12.1", rom_md5=""
    )
    assert protocol.max_episode_frames == 120
    pong = CheckpointScore(name="run", score=score, protocol=protocol, reference=human_random("pong"))
    assert (pong.comparable, pong.human_normalised) == (False, None)


def test_score_of_games_cut_at_a_published_length_is_human_normalised() -> None:
    score = EvaluationScore(returns=(14.6,), lengths_frames=(108_000,), end_reasons=("frame_cap",))
    protocol = evaluation_protocol(
        tiny_spec("evaluation.max_episode_frames=108_000"),
        episodes=1, checkpoint="last", ale_version="0.12.1", rom_md5="",
    )  # fmt: skip
    pong = CheckpointScore(name="run", score=score, protocol=protocol, reference=human_random("pong"))
    assert pong.human_normalised == pytest.approx(1.0)


def test_toy_game_has_no_human_normalised_score(finished: Path) -> None:
    assert evaluate_checkpoint(load_frozen(finished, CPU), episodes=1).human_normalised is None


@pytest.mark.slow
def test_checkpoint_of_another_game_is_refused(mine: Path, tmp_path: Path) -> None:
    run(tmp_path / "pong", "game=pong", "env.kind=atari", *FEW_STEPS)
    latest = (tmp_path / "pong" / "checkpoints" / "latest").resolve()
    shutil.copytree(latest, mine / "checkpoints" / "step_000000001")
    with pytest.raises(DamagedError, match=r"is a checkpoint of pong, but the spec of its run has catch"):
        load_frozen(mine / "checkpoints" / "step_000000001", CPU)


def test_checkpoint_of_another_network_is_refused(mine: Path, tmp_path: Path) -> None:
    run(tmp_path / "dueling", "toggles.dueling=true", *FEW_STEPS)
    latest = (tmp_path / "dueling" / "checkpoints" / "latest").resolve()
    shutil.copytree(latest, mine / "checkpoints" / "step_000000001")
    with pytest.raises(DamagedError, match=r"is of another game or network"):
        load_frozen(mine / "checkpoints" / "step_000000001", CPU)


def unfinished(path: Path) -> list[Path]:
    return list((path / "evaluations").glob("*.partial.jsonl"))


def interrupted_after(games: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send SIGTERM after a number of finished games of an evaluation."""
    add = EvaluationProgress.add

    def add_and_end(progress: EvaluationProgress, episode: int, game: EvaluationEpisode) -> None:
        add(progress, episode, game)
        if len(progress.finished) == games:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(EvaluationProgress, "add", add_and_end)


def test_interrupted_evaluation_goes_on_with_the_same_command(
    mine: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("eval", str(mine), "--episodes", "6", "--envs", "1", "--json")
    assert dqn(*command, "--no-save") == 0
    unbroken = json.loads(capsys.readouterr().out)["scores"][0]
    with monkeypatch.context() as patch:
        interrupted_after(2, patch)
        assert dqn(*command) == 143
    assert "2 finished games kept; the same command goes on" in capsys.readouterr().err
    played: list[int] = []
    add = EvaluationProgress.add
    monkeypatch.setattr(
        EvaluationProgress, "add", lambda kept, number, game: (played.append(number), add(kept, number, game))
    )
    assert dqn(*command) == 0
    output = capsys.readouterr()
    assert "2 finished games kept from before" in output.err
    found = json.loads(output.out)["scores"][0]
    assert played == [2, 3, 4, 5]
    assert (found["returns"], found["protocol_digest"]) == (unbroken["returns"], unbroken["protocol_digest"])
    assert unfinished(mine) == []


def test_first_of_both_protocols_is_not_played_again_after_an_interruption_in_the_second(
    mine: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("eval", str(mine), "--episodes", "3", "--envs", "1", "--protocol", "both")
    add, played = EvaluationProgress.add, list[str]()

    def add_and_interrupt(progress: EvaluationProgress, episode: int, game: EvaluationEpisode) -> None:
        add(progress, episode, game)
        played.append(f"{progress.path.name.split('_')[2]} {episode}")
        if played[-1] == "modern 1" and played.count("modern 1") == 1:
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(EvaluationProgress, "add", add_and_interrupt)
    assert dqn(*command) == 143
    played[:] = ["modern 1"]
    assert dqn(*command) == 0
    assert played == ["modern 1", "modern 2"]
    assert "classic protocol: 3 finished games kept from before" in capsys.readouterr().err
    names = sorted(path.name.split("_")[2] for path in (mine / "evaluations").iterdir())
    assert names == ["classic", "modern"]


def test_checkpoint_that_is_replaced_while_it_is_read_gives_way_to_the_next(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = mine / "checkpoints"
    newer = folder / "step_000000200"
    read = frozen.verify

    def replaced(checkpoint: Path, *, only: list[str]) -> dict[str, object]:
        if not newer.exists():
            shutil.copytree(checkpoint, newer)
            shutil.rmtree(checkpoint)
            (folder / "latest").unlink()
            (folder / "latest").symlink_to(newer.name)
        return read(checkpoint, only=only)

    monkeypatch.setattr(frozen, "verify", replaced)
    assert load_frozen(mine, CPU).checkpoint == newer


def test_score_of_a_game_that_flickers_is_not_human_normalised() -> None:
    score = EvaluationScore(returns=(14.6,), lengths_frames=(9_000,), end_reasons=("game_over",))
    protocol = evaluation_protocol(
        tiny_spec("env.flicker_probability=0.5"),
        episodes=1,
        checkpoint="last",
        ale_version="0.12.1",
        rom_md5="",
    )
    pong = CheckpointScore(name="run", score=score, protocol=protocol, reference=human_random("pong"))
    assert (pong.comparable, pong.human_normalised) == (False, None)


def test_run_directory_of_the_name_best_is_no_best_checkpoint(finished: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(finished, tmp_path / "best", symlinks=True))
    assert load_frozen(path, CPU).choice == "last"
    assert load_frozen(path / "checkpoints/best", CPU).choice == "best"


def test_run_whose_checkpoints_are_gone_is_damaged(mine: Path) -> None:
    for path in (mine / "checkpoints").iterdir():
        path.unlink() if path.is_symlink() or path.is_file() else shutil.rmtree(path)
    for command in (lambda: load_frozen(mine, CPU), lambda: check_run(RunDirectory.open(mine))):
        with pytest.raises(DamagedError, match=r"empty, although events\.jsonl lists checkpoints"):
            command()


def test_checkpoint_without_its_manifest_is_damaged(mine: Path) -> None:
    checkpoint = (mine / "checkpoints/latest").resolve()
    (checkpoint / "manifest.json").unlink()
    for path in (mine, checkpoint, mine / "checkpoints/latest"):
        with pytest.raises(DamagedError, match=r"manifest\.json: missing"):
            load_frozen(path, CPU)
    with pytest.raises(DamagedError, match=rf"{checkpoint.name}/manifest\.json: missing"):
        check_run(RunDirectory.open(mine))


@pytest.fixture
def with_two(tiny_run: Callable[..., Path], tmp_path: Path) -> Path:
    """A copy of a run with the checkpoints of steps 150 and 200."""
    made = tiny_run("training.total_frames=800", "checkpoint.keep_last=2")
    return Path(shutil.copytree(made, tmp_path / "two", symlinks=True))


def test_older_checkpoint_is_not_evaluated_in_place_of_a_missing_one(with_two: Path) -> None:
    shutil.rmtree(with_two / "checkpoints/step_000000200")
    with pytest.raises(DamagedError, match=r"step_000000200/manifest\.json: missing"):
        load_frozen(with_two, CPU)


@pytest.mark.parametrize("place", [".", "checkpoints/step_000000200", "checkpoints/latest"])
@pytest.mark.parametrize(
    ("name", "problem"),
    [("manifest.json", "missing"), ("agent.pt", "differs from manifest.json; the file is damaged")],
)
def test_whole_checkpoint_is_named_in_place_of_a_damaged_one(
    with_two: Path, name: str, problem: str, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = with_two / "checkpoints/step_000000200" / name
    damaged.unlink() if problem == "missing" else damaged.write_bytes(b"")
    for command in ("eval", "export"):
        assert dqn(command, str(with_two / place)) == 4
        assert capsys.readouterr().err == (
            f"error: {damaged}: {problem}\nrestore it, or name the newest checkpoint with a whole agent: "
            f"{with_two}/checkpoints/step_000000150\n"
        )


def test_run_without_a_whole_checkpoint_is_to_be_restored(with_two: Path) -> None:
    for agent in with_two.glob("checkpoints/step_*/agent.pt"):
        agent.write_bytes(b"")
    with pytest.raises(DamagedError, match=r"\nrestore it: no checkpoint of this run has a whole agent$"):
        load_frozen(with_two, CPU)


@pytest.mark.parametrize("name", ["agent.pt", "manifest.json"])
@pytest.mark.parametrize("place", [".", "checkpoints/latest"])
def test_damaged_file_has_a_relative_path_if_that_of_the_agent_is(
    with_two: Path, name: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (with_two / "checkpoints/step_000000200" / name).unlink()
    monkeypatch.chdir(with_two.parent)
    with pytest.raises(DamagedError) as refusal:
        load_frozen(Path("two") / place, CPU)
    assert str(refusal.value).splitlines()[0] == f"two/checkpoints/step_000000200/{name}: missing"


def test_archive_that_does_not_exist_is_not_sought_as_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert dqn("eval", "re.dqn") == 2
    assert capsys.readouterr().err == "error: re.dqn: not found; expected an archive by `dqn export`\n"


def test_weights_that_are_not_finite_are_not_evaluated(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_nan(*arguments: Any) -> dict[str, Any]:
        found = read_agent(*arguments)
        next(iter(found["online"].values())).fill_(torch.nan)
        return found

    monkeypatch.setattr(frozen, "read_agent", with_nan)
    with pytest.raises(DamagedError, match=r"its weights torso\..+ are not finite"):
        load_frozen(mine, CPU)
