"""`dqn export` and `dqn import`: what they write, and what they refuse."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from exported import add_video
from msgspec.structs import replace
from tiny import CPU, run

import atari_dqn as dqn
from atari_dqn.cli.app import main
from atari_dqn.evaluation.frozen_agent import load_frozen
from atari_dqn.run.archive.archive import read_archive
from atari_dqn.run.archive.hub import card
from atari_dqn.run.recorded_scores import RecordedScore


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exports")
    run(folder / "my run")
    add_video(load_frozen(folder / "my run", CPU), "step_000000300", b"frames")
    return folder


@pytest.fixture(autouse=True)
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def command(*arguments: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["dqn", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_an_archive_has_the_name_of_its_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("export", "my run/checkpoints/best") == 0
    assert dqn.load("my run.dqn").game == "catch"
    assert "my run.dqn (catch, " in capsys.readouterr().out
    Path("my run.dqn").unlink()


def test_an_archive_is_evaluated_recorded_imported_and_compared(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("export", "my run", "-o", "agent.dqn") == 0
    assert command("eval", "agent.dqn", "--episodes", "2", "--json") == 0
    assert command("record", "agent.dqn", "--episodes", "1", "--no-overlay", "--scale", "1") == 0
    assert command("import", "agent.dqn", "-o", "imported") == 0
    assert command("eval", "imported", "--episodes", "2") == 0
    assert command("compare", "agent.dqn", "imported") == 0
    assert len(list(Path("agent_results/evaluations").glob("*.json"))) == 1
    assert len(list(Path("agent_results/videos").glob("*.mp4"))) == 1
    assert len(list(Path("imported/evaluations").glob("*.json"))) == 1


def test_a_hub_folder_has_a_card_scores_a_video_and_the_archive() -> None:
    assert command("export", "my run", "--hub", "hub") == 0
    assert sorted(path.name for path in Path("hub").iterdir()) == [
        "README.md",
        "agent.dqn",
        "replay.mp4",
        "results.json",
        "spec.toml",
    ]
    text = Path("hub/README.md").read_text()
    scores = json.loads(Path("hub/results.json").read_text())
    final = next(score for score in scores if score["kind"] == "final")
    mean = sum(final["returns"]) / len(final["returns"])
    assert text.startswith("---\nlibrary_name: atari_dqn\ntags:\n- catch\n- deep-reinforcement-learning\n")
    assert f'    - type: mean_reward\n      value: "{mean:.2f} +/- ' in text
    assert final["protocol_digest"] in text
    assert "track A*" in text
    assert dqn.load("hub/agent.dqn").env_frames == 1_200


def test_a_hub_folder_is_no_run_but_has_an_archive(capsys: pytest.CaptureFixture[str]) -> None:
    Path("published").mkdir()
    assert command("export", "my run", "--hub", "published/hub") == 0
    assert command("eval", "published/hub") == 2
    assert "published/hub is a folder for a model hub; name its archive: published/hub/agent.dqn" in (
        capsys.readouterr().err
    )
    assert command("compare", "published", "--strict") == 0


@pytest.fixture(scope="module", params=["file", "imported"])
def used(folder: Path, request: pytest.FixtureRequest) -> Path:
    """An archive that was evaluated and recorded later, its score in `score.json`, and its folder `hub`."""
    place = folder / f"used {request.param}"
    place.mkdir()
    early = str(place / "early.dqn")
    assert command("export", str(folder / "my run/checkpoints/step_000000150"), "-o", early) == 0
    source, results = early, place / "early_results"
    if request.param == "imported":
        source, results = str(place / "early"), place / "early"
        assert command("import", early, "-o", source) == 0
    assert command("eval", source, "--episodes", "5") == 0
    (score,) = (results / "evaluations").glob("*.json")
    (place / "score.json").write_bytes(score.read_bytes())
    video = add_video(load_frozen(Path(source), CPU), "step_000000150_run", b"later frames")
    assert video.parent == results / "videos"
    assert command("export", source, "--hub", str(place / "hub")) == 0
    return place


def test_the_card_of_an_archive_has_the_score_of_its_evaluation(used: Path) -> None:
    score = json.loads((used / "score.json").read_text())
    assert f"| {score['protocol_digest']} |" in (used / "hub" / "README.md").read_text()


def test_the_scores_of_an_archive_have_the_games_of_its_evaluation(used: Path) -> None:
    scores = json.loads((used / "hub" / "results.json").read_text())
    evaluated = [score["returns"] for score in scores if score["kind"] == "eval"]
    assert evaluated == [json.loads((used / "score.json").read_text())["returns"]]


def test_the_hub_folder_of_an_archive_has_the_video_that_was_recorded_of_it(used: Path) -> None:
    assert (used / "hub" / "replay.mp4").read_bytes() == b"later frames"


def test_the_archive_in_the_hub_folder_has_the_scores_of_its_results(used: Path) -> None:
    archive = read_archive(used / "hub" / "agent.dqn")
    assert archive.parts["scores.json"] == (used / "hub" / "results.json").read_bytes()


def test_the_card_says_how_many_games_were_cut_and_gives_hubs_only_whole_scores() -> None:
    assert command("export", "my run", "-o", "scored.dqn") == 0
    archive = read_archive(Path("scored.dqn"))
    whole = score_of(archive.agent.step, mean_return=3.0, frame_caps=0)
    cut = score_of(archive.agent.step, mean_return=900.0, frame_caps=2)
    text = card(archive, [whole, cut])
    assert "| 900.00 +/- 0.00 | 2 | 2 | ? | f |" in text
    assert 'value: "3.00 +/- 0.00"' in text
    assert "model-index" not in card(archive, [cut])


def test_the_card_gives_hubs_mean_and_sample_deviation_of_the_score_of_most_games_of_these_weights() -> None:
    assert command("export", "my run", "-o", "agent of few.dqn") == 0
    archive = read_archive(Path("agent of few.dqn"))
    plain = score_of(archive.agent.step, mean_return=1.0, frame_caps=0)
    most = replace(plain, mean_return=3.0, returns=(1.0, 2.0, 6.0))
    of_other_weights = replace(plain, step=plain.step - 1, returns=9 * (5.0,))
    assert 'value: "3.00 +/- 2.65"' in card(archive, [plain, most, of_other_weights])


def score_of(step: int, *, mean_return: float, frame_caps: int) -> RecordedScore:
    return RecordedScore(
        step=step, env_frames=4 * step, kind="eval", protocol_digest="f", protocol=None,
        mean_return=mean_return, returns=2 * (mean_return,), lengths_frames=None, frame_caps=frame_caps,
    )  # fmt: skip


@pytest.fixture
def large_video() -> Iterator[Path]:
    """A newer video of one byte too many, which takes no space on the disk."""
    video = add_video(load_frozen(Path("my run"), CPU), "step_000000300_run", b"frames")
    with video.open("wb") as file:
        file.truncate(2**28 + 1)
    yield video
    video.unlink()
    video.with_suffix(".json").unlink()


@pytest.mark.parametrize("words", [("-o", "small.dqn"), ("--hub", "small")], ids=["archive", "hub"])
def test_a_video_that_is_too_large_is_left_out_with_its_size(
    large_video: Path, words: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("export", "my run", *words) == 0
    printed = capsys.readouterr().out
    assert printed.endswith(f"; {large_video} is left out: 268,435,457 bytes, expected at most 268,435,456\n")


def test_a_page_plays_back_the_newest_recording(capsys: pytest.CaptureFixture[str]) -> None:
    other = "my run/checkpoints/step_000000150"
    assert command("export", other, "--hub", "unused", "--web", "page") == 2
    assert "no game of these weights (step 150) is recorded; `dqn record`" in capsys.readouterr().err
    assert command("record", "my run", "--episodes", "2", "--no-overlay", "--scale", "1") == 0
    assert command("export", "my run", "--web", "page") == 0
    assert "page/index.html (catch, 2 games, " in capsys.readouterr().out
    assert {path.name for path in Path("page").iterdir()} == {
        "index.html", "player.css", "player.js", "recording.js", "game_1.js", "game_2.js",
    }  # fmt: skip
    assert not Path("unused").exists()


def test_the_card_of_weights_without_a_score_claims_none() -> None:
    assert command("export", "my run", "-o", "unscored.dqn") == 0
    text = card(read_archive(Path("unscored.dqn")), [])
    assert "model-index" not in text
    assert "have not been evaluated" in text


REFUSED = {
    "no run": (["export", "absent"], 2, "not found"),
    "an archive of an archive": (["export", "good.dqn"], 2, "is an archive already"),
    "another suffix": (["export", "my run", "-o", "agent.zip"], 2, "ends in .dqn"),
    "another suffix of ONNX": (["export", "my run", "--onnx", "agent.bin"], 2, "ends in .onnx"),
    "an archive that is there": (["export", "my run", "-o", "good.dqn"], 2, "never overwritten"),
    "a hub folder that is there": (["export", "my run", "--hub", "my run"], 2, "never overwritten"),
    "a page that is there": (["export", "my run", "--web", "my run"], 2, "never overwritten"),
    "one file for both": (["export", "my run", "--onnx", "x.onnx", "--hub", "x.onnx"], 2, "named twice"),
    "one file under two names": (
        ["export", "my run", "--onnx", "x.onnx", "--hub", "my run/../x.onnx"],
        2,
        "named twice",
    ),
    "no archive": (["import", "absent.dqn"], 2, "not found"),
    "a file of another kind": (["import", "notes.txt"], 2, "is not an archive"),
    "a run to import": (["import", "my run"], 2, "is not an archive"),
    "a folder that is there": (["import", "good.dqn", "-o", "my run"], 2, "never overwritten"),
    "a folder like an option": (["import", "good.dqn", "-o", "-x"], 2, "-o: found '-x'"),
    "an archive to resume": (["resume", "good.dqn"], 2, "is an archive, without the state of its training"),
    "an archive to verify": (["verify", "good.dqn"], 2, "`dqn import` unpacks it"),
    "an archive to show": (["spec", "show", "good.dqn"], 2, "unpacks an archive into a folder with its spec"),
    "an archive to train": (["train", "good.dqn"], 2, "is a ZIP file"),
    "a damaged archive": (["import", "damaged.dqn"], 4, "weights.safetensors: its SHA-256"),
    "a damaged archive to evaluate": (["eval", "damaged.dqn"], 4, "weights.safetensors: its SHA-256"),
    "a damaged archive to compare": (["compare", "damaged.dqn", "--strict"], 4, "weights.safetensors"),
    "a damaged archive to convert": (["export", "damaged.dqn", "--onnx", "y.onnx"], 4, "weights.safetensors"),
}


@pytest.mark.parametrize(("arguments", "code", "words"), REFUSED.values(), ids=REFUSED)
def test_wrong_input_is_refused_in_words_and_writes_nothing(
    folder: Path, arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if not Path("good.dqn").exists():
        assert command("export", "my run", "-o", "good.dqn") == 0
        data = bytearray(Path("good.dqn").read_bytes())
        data[len(data) // 2] ^= 1
        Path("damaged.dqn").write_bytes(data)
        Path("notes.txt").write_text("notes")
    before = sorted(folder.iterdir())
    assert command(*arguments) == code
    assert words in capsys.readouterr().err
    assert sorted(folder.iterdir()) == before
