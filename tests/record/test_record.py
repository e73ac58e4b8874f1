"""A video shows the frames of the emulator, and its recording renders the same bytes again."""

import hashlib
import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import torch
from tiny import CPU, run

from atari_dqn.cli.app import main
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.evaluation.frozen_agent import load_frozen
from atari_dqn.record import checkpoint_recording, video_rendering
from atari_dqn.record import saliency as saliency_module
from atari_dqn.record import video as video_module
from atari_dqn.record.checkpoint_recording import record_checkpoint
from atari_dqn.record.panel import Panel, PanelState
from atari_dqn.record.playback import PlaybackStep, playback
from atari_dqn.record.recorder import median_game
from atari_dqn.record.recording import (
    Recording,
    VideoOptions,
    load_recording,
    recording_bytes,
    save_recording,
)
from atari_dqn.record.video_rendering import render
from atari_dqn.run.scores import EvaluationEpisode

PONG = (
    "game=pong", "env.kind=atari", "env.screen_size_pixels=84", "network.hidden_units=16",
    "evaluation.full_episodes=1", "evaluation.light_episodes=1",
)  # fmt: skip
SHORT = (
    "training.total_frames=260", "replay.prefill_steps=60",
    "evaluation.full_period_frames=9999", "evaluation.light_period_frames=9999",
    "evaluation.epsilon=0.3", "env.sticky_probability=0.25",
)  # fmt: skip


@pytest.fixture(scope="module")
def catch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("outputs") / "catch"
    run(path, *SHORT)
    return path


@pytest.fixture(scope="module")
def pong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("outputs") / "pong"
    run(path, *PONG, *SHORT)
    return path


@pytest.fixture
def mine(catch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the run of Catch that a test may change, outside the working directory."""
    shutil.copytree(catch, tmp_path / "run", symlinks=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "run"


def recorded(path: Path, **options) -> Recording:
    options = {"options": VideoOptions(scale=2), "on_progress": lambda *_: None} | options
    return record_checkpoint(load_frozen(path, CPU), **options)


def dqn(*arguments: str) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["dqn", *arguments])
        try:
            main()
        except SystemExit as ended:
            return int(str(ended.code))
    return 0


def pictures(path: Path) -> Iterator[np.ndarray]:
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            yield frame.to_ndarray(format="rgb24")


@pytest.mark.slow
def test_video_is_h264_in_yuv420p_at_60_frames_a_second(pong: Path, tmp_path: Path) -> None:
    render(recorded(pong), tmp_path / "a.mp4")
    with av.open(str(tmp_path / "a.mp4")) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.pix_fmt, stream.average_rate) == ("h264", "yuv420p", 60)
        assert (stream.codec_context.width, stream.codec_context.height) == (640, 420)


def test_video_shows_every_emulator_frame_from_the_reset_to_the_end(pong: Path, tmp_path: Path) -> None:
    recording = recorded(pong, options=VideoOptions(scale=2, overlay=False))
    render(recording, tmp_path / "a.mp4")
    screens = [screen for moment in playback(recording, recording.games[0]) for screen in moment.screens]
    shown = list(pictures(tmp_path / "a.mp4"))
    # the cap counts the no-op frames; the reset's screen comes before all of them
    assert len(shown) == len(screens) == 1 + 120
    for place in (0, 60, -1):
        enlarged = screens[place].repeat(2, axis=0).repeat(2, axis=1).astype(int)
        # 320 pixels in the middle of 384
        assert np.abs(enlarged - shown[place][:, 32:-32]).mean() < 2.0, place


@pytest.mark.parametrize(("overlay", "size"), [(True, (896, 630)), (False, (640, 840))])
def test_video_of_the_usual_size_is_larger_without_the_panel(
    pong: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overlay: bool, size: tuple[int, int]
) -> None:
    sizes = []

    def refuse(path: Path, *, width: int, height: int, metadata: object) -> None:
        sizes.append((width, height))
        raise UserError("no space left on device")

    monkeypatch.setattr(video_rendering, "mp4_file", refuse)
    with pytest.raises(UserError):
        render(recorded(pong, options=VideoOptions(overlay=overlay)), tmp_path / "a.mp4")
    assert sizes == [size]


def test_video_is_dark_where_flicker_made_the_agents_frame_black(catch: Path, tmp_path: Path) -> None:
    recording = recorded(catch, options=VideoOptions(scale=2, overlay=False))
    flickering = replace(recording, env=replace(recording.env, flicker_probability=0.5))
    render(flickering, tmp_path / "a.mp4")
    steps = list(playback(flickering, flickering.games[0]))
    expected = [step.obscured for step in steps for _ in step.screens]
    # the ball and the paddle are white, 255, and a quarter of it is 63
    assert [picture.max() < 160 for picture in pictures(tmp_path / "a.mp4")] == expected
    assert len(set(expected)) == 2


def test_video_shows_the_saliency_of_a_decision_on_the_frames_after_it(catch: Path, tmp_path: Path) -> None:
    recording = recorded(catch, options=VideoOptions(scale=2, overlay=False))
    (game,) = recording.games
    saliency = np.zeros((len(game.trace.actions), 7, 7), np.uint8)
    saliency[3] = 255
    render(replace(recording, games=(replace(game, saliency=saliency),)), tmp_path / "a.mp4")
    expected = [step.step == 3 for step in playback(recording, game) for _ in step.screens]
    # magenta on black, of which most of the screen is
    assert [np.median(picture[:, 32:40, 0]) > 90 for picture in pictures(tmp_path / "a.mp4")] == expected


@pytest.mark.slow
def test_screens_are_those_of_the_evaluation(pong: Path) -> None:
    agent = load_frozen(pong, CPU)
    played = evaluate(agent.network, agent.spec, episodes=2)
    recording = recorded(pong, episodes=2)
    assert [game.result for game in recording.games] == list(played)
    for game in recording.games:
        assert list(playback(recording, game))[-1].score == game.result.episode_return


def test_recording_makes_the_same_video_again(mine: Path) -> None:
    assert dqn("record", str(mine), "-o", "a.mp4") == 0
    assert dqn("record", "--replay", "a.mp4", "-o", "b.mp4") == 0
    assert Path("a.mp4").read_bytes() == Path("b.mp4").read_bytes()


def test_recording_survives_its_file(catch: Path, tmp_path: Path) -> None:
    recording = recorded(catch, episodes=2, saliency=True)
    save_recording(recording, tmp_path / "a.json")
    assert recording_bytes(load_recording(tmp_path / "a.json")) == recording_bytes(recording)


def test_recording_from_before_a_key_of_the_environment_is_read(catch: Path, tmp_path: Path) -> None:
    recording = recorded(catch)
    table = json.loads(recording_bytes(recording))
    del table["env"]["life_loss_ends_skip"], table["sha256"]
    text = json.dumps(table, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    table["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (tmp_path / "older.json").write_text(json.dumps(table))
    assert load_recording(tmp_path / "older.json").env == recording.env


def test_file_carries_seed_actions_and_protocol_and_the_video_its_recording(mine: Path) -> None:
    assert dqn("record", str(mine), "-o", "a.mp4") == 0
    table = json.loads(Path("a.json").read_text())
    with av.open("a.mp4") as container:
        comment = json.loads(container.metadata["comment"])
    assert table["seed"] == comment["seed"] == 1
    assert set(table["games"][0]["actions"]) <= set("012")
    assert comment["protocol_digest"] == table["source"]["protocol_digest"]
    assert comment["recording_sha256"] == table["sha256"]


def test_title_of_a_video_has_the_frames_of_training(mine: Path) -> None:
    assert dqn("record", str(mine), "-o", "a.mp4", "--scale", "1") == 0
    with av.open("a.mp4") as container:
        assert container.metadata["title"] == "catch after 260 frames, seed 1, the first game"


@pytest.mark.parametrize(
    ("episodes", "best_of", "choice"), [(1, 3, "the best of 3"), (2, None, "the first 2 games")]
)
def test_recording_says_which_games_it_has(
    catch: Path, episodes: int, best_of: int | None, choice: str
) -> None:
    assert recorded(catch, episodes=episodes, best_of=best_of).choice == choice


def test_panel_counts_the_frames_before_each_picture(
    catch: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, shown = recorded(catch, options=VideoOptions(scale=1)), []

    class Spy(Panel):
        def picture(self, state: PanelState) -> np.ndarray:
            shown.append(state.frame)
            return super().picture(state)

    monkeypatch.setattr(video_rendering, "Panel", Spy)
    render(recording, tmp_path / "a.mp4")
    frames = [len(step.screens) for step in playback(recording, recording.games[0])]
    assert shown == [0, *accumulate(frames[:-1])]


def test_best_of_shows_the_highest_return_first(catch: Path) -> None:
    everything = recorded(catch, episodes=6)
    best = recorded(catch, episodes=2, best_of=6)
    returns = sorted((game.result.episode_return for game in everything.games), reverse=True)
    assert [game.result.episode_return for game in best.games] == returns[:2]
    assert best.choice == "the best 2 of 6"


@pytest.mark.parametrize(("returns", "median"), [((9.0, 1.0, 5.0), 5.0), ((9.0, 1.0, 7.0, 5.0), 5.0)])
def test_median_game_has_the_median_return_or_the_lower_of_two(
    returns: tuple[float, ...], median: float
) -> None:
    played = [
        EvaluationEpisode(episode_return=each, length_frames=4, end_reason="game_over") for each in returns
    ]
    assert returns[median_game(played)] == median


@pytest.mark.slow
def test_default_place_is_in_the_run_and_an_older_video_is_kept(mine: Path) -> None:
    assert dqn("record", str(mine)) == 0
    assert dqn("record", str(mine), "--no-overlay") == 0
    names = sorted(path.name for path in (mine / "videos").iterdir())
    assert names == [
        "step_000000065_run.json", "step_000000065_run.mp4", "step_000000065_run_2.json",
        "step_000000065_run_2.mp4",
    ]  # fmt: skip


def videos_of(path: Path) -> dict[str, bytes]:
    """The first bytes of each file."""
    return {each.name: each.read_bytes()[:6] for each in sorted((path / "videos").iterdir())}


def test_recording_of_another_command_at_the_same_time_is_kept(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(*arguments: Any, **options: Any) -> Recording:
        (mine / "videos/step_000000065_run.json").write_bytes(b"theirs")
        return record_checkpoint(*arguments, **options)

    monkeypatch.setattr(checkpoint_recording, "record_checkpoint", meanwhile)
    assert dqn("record", str(mine), "--scale", "1") == 0
    found = videos_of(mine)
    assert found.pop("step_000000065_run.json") == b"theirs"
    assert list(found) == ["step_000000065_run_2.json", "step_000000065_run_2.mp4"]


def test_video_without_a_recording_is_passed_over(mine: Path) -> None:
    (mine / "videos").mkdir()
    (mine / "videos/step_000000065_run.mp4").write_bytes(b"theirs")
    assert dqn("record", str(mine), "--scale", "1") == 0
    found = videos_of(mine)
    assert found.pop("step_000000065_run.mp4") == b"theirs"
    assert list(found) == ["step_000000065_run_2.json", "step_000000065_run_2.mp4"]


@pytest.mark.parametrize("output", [None, "again.mp4"])
def test_replayed_video_has_its_recording_next_to_it(mine: Path, output: str | None) -> None:
    assert dqn("record", str(mine), "-o", "a.mp4", "--scale", "1") == 0
    assert dqn("record", "--replay", "a.mp4", *([] if output is None else ["-o", output])) == 0
    again = Path(output or "a_replay.mp4")
    assert again.read_bytes() == Path("a.mp4").read_bytes()
    assert again.with_suffix(".json").read_bytes() == Path("a.json").read_bytes()


def test_replay_that_fails_leaves_nothing(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise UserError("no space left on device")

    save_recording(recorded(mine), mine / "a.json")
    (mine / "a.mp4").write_bytes(b"frames")
    before = sorted(mine.iterdir())
    monkeypatch.setattr(video_rendering, "render", fail)
    assert dqn("record", "--replay", str(mine / "a.mp4")) == 2
    assert dqn("record", "--replay", str(mine / "a.mp4"), "-o", str(mine / "b.mp4")) == 2
    assert sorted(mine.iterdir()) == before


def test_video_that_fails_says_how_it_is_made_of_the_games_that_were_played(
    mine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*arguments: Any, **options: Any) -> None:
        raise UserError("no space left on device")

    monkeypatch.setattr(video_rendering, "render", fail)
    assert dqn("record", str(mine), "-o", "my game.mp4") == 2
    assert "`dqn record --replay 'my game.mp4'` makes the video" in capsys.readouterr().err


@pytest.mark.parametrize("output", [None, "a.mp4"])
def test_video_that_is_missing_is_rendered_next_to_its_recording(mine: Path, output: str | None) -> None:
    assert dqn("record", str(mine), "-o", "a.mp4", "--scale", "1") == 0
    Path("a.mp4").unlink()
    assert dqn("record", "--replay", "a.json", *([] if output is None else ["-o", output])) == 0
    assert sorted(path.name for path in Path().glob("a*")) == ["a.json", "a.mp4"]


class OnePixel(torch.nn.Module):
    """A network with one value: a pixel of the newest frame but one."""

    def __init__(self, row: int, column: int) -> None:
        super().__init__()
        self.place, self.scale = (row, column), torch.nn.Parameter(torch.tensor(1 / 255))

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        row, column = self.place
        return frames[:, -2, row, column, None] * self.scale


@pytest.fixture(scope="module")
def one_pixel(catch: Path) -> tuple[tuple[int, int], np.ndarray]:
    """A pixel of the ball in the first frame of a game, and the saliency of the game for that pixel alone."""
    recording = recorded(catch)
    game = recording.games[0]
    first = next(playback(recording, game)).rows.frame[0]
    row, column = np.unravel_index(first.argmax(), first.shape)
    network = OnePixel(int(row), int(column))
    return network.place, saliency_module.saliency_of(recording, game, network)


def test_saliency_is_of_the_frames_before_the_decision(one_pixel: tuple[tuple[int, int], np.ndarray]) -> None:
    _, saliency = one_pixel
    assert [bool(each.any()) for each in saliency[:2]] == [False, True]


def test_saliency_is_greatest_where_a_change_matters(one_pixel: tuple[tuple[int, int], np.ndarray]) -> None:
    (row, column), saliency = one_pixel
    greatest = np.unravel_index(saliency[1].argmax(), saliency[1].shape)
    assert greatest == (row // 5, column // 5)


def test_saliency_is_in_proportion_to_the_change_of_the_value(
    one_pixel: tuple[tuple[int, int], np.ndarray],
) -> None:
    (row, column), saliency = one_pixel
    masks = saliency_module.location_masks(36)[:, row, column].reshape(7, 7)
    unclipped = (saliency[1] > 20) & (saliency[1] < 255)
    ratios = saliency[1][unclipped] / masks[unclipped]
    assert len(ratios) > 5
    assert ratios == pytest.approx(ratios.mean(), rel=0.1)


def test_saliency_has_a_byte_for_each_location(catch: Path) -> None:
    saliency = recorded(catch, saliency=True).games[0].saliency
    assert saliency is not None
    assert saliency.dtype == np.uint8
    assert saliency.max() == 255
    assert saliency.shape[1:] == (7, 7)


def test_saliency_is_computed_while_the_game_is_played_back(
    catch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording, network = recorded(catch), load_frozen(catch, CPU).network
    held: list[int] = []
    played: list[int] = []

    def counted(*arguments: Any) -> Iterator[PlaybackStep]:
        for step in playback(*arguments):
            played.append(step.step)
            yield step

    monkeypatch.setattr(saliency_module, "playback", counted)
    saliency_module.saliency_of(
        recording,
        recording.games[0],
        network,
        on_progress=lambda done, total: held.append(len(played) - done),
    )
    assert len(held) > 3
    assert set(held) == {1}


def test_game_that_comes_out_otherwise_is_not_shown(catch: Path, tmp_path: Path) -> None:
    recording = recorded(catch)
    game = recording.games[0]
    changed = replace(game, result=replace(game.result, episode_return=77.0))
    with pytest.raises(DamagedError, match=r"expected \(77"):
        render(replace(recording, games=(changed,)), tmp_path / "a.mp4")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_recording_of_another_rom_is_not_played(pong: Path, tmp_path: Path) -> None:
    with pytest.raises(DamagedError, match=r"MD5"):
        render(replace(recorded(pong), rom_md5="0" * 32), tmp_path / "a.mp4")


@pytest.mark.slow
def test_recording_that_was_edited_is_damaged(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dqn("record", str(mine), "-o", "a.mp4") == 0
    Path("a.json").write_text(Path("a.json").read_text().replace('"seed": 1', '"seed": 2'))
    assert dqn("record", "--replay", "a.json", "-o", "b.mp4") == 4
    assert "was edited" in capsys.readouterr().err


FAULTS = {
    "nothing named": ([], "expected RUN_DIR, CHECKPOINT or --replay FILE"),
    "no run": (["."], "is not a run directory"),
    "no recording": (["--replay", "absent.mp4"], "absent.json: not found"),
    "replay of something else": (["--replay", "run/provenance.json"], "is not a recording"),
    "replay with other wishes": (["--replay", "a.json", "--saliency"], "--replay makes the same video again"),
    "no mp4": (["run", "-o", "a.avi"], "expected a name that ends in .mp4"),
    "video is there": (["run", "-o", "there.mp4"], "there.mp4 exists and is never overwritten"),
    "recording is there": (["run", "-o", "half.mp4"], "half.json exists and is never overwritten"),
    "below a file": (["run", "-o", "there.mp4/a.mp4"], "the folder there.mp4 does not exist"),
    "best of too few": (["run", "--episodes", "3", "--best-of", "2"], "--best-of: found 2 with --episodes 3"),
}


@pytest.mark.parametrize(("arguments", "says"), FAULTS.values(), ids=FAULTS.keys())
def test_fault_is_one_message_with_exit_code_2_and_nothing_written(
    arguments: list[str], says: str, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("there.mp4").write_text("mine")
    Path("half.json").write_text("mine")
    before = sorted(mine.parent.rglob("*"))
    assert dqn("record", *arguments) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("error:") == 1
    assert sorted(mine.parent.rglob("*")) == before
    assert Path("there.mp4").read_text() == "mine"


def test_encoder_that_is_missing_is_a_users_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video_module, "ENCODER", "lib_of_no_one")
    with pytest.raises(UserError, match=r"no encoder 'lib_of_no_one'"):
        video_module.require_encoder()


def test_package_that_is_missing_is_a_users_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(UserError, match=r"pip install 'atari-dqn\[record\]'"):
        video_module.require_encoder()
