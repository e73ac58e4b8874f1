import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tiny import CPU

from atari_dqn.errors import UserError
from atari_dqn.evaluation.frozen_agent import load_frozen
from atari_dqn.record import video_rendering
from atari_dqn.record.checkpoint_recording import record_checkpoint
from atari_dqn.record.recording import RecordedGame, Recording, VideoOptions
from atari_dqn.record.video import mp4_file


def test_error_while_pictures_are_drawn_is_not_blamed_on_the_video(tmp_path: Path) -> None:
    unreadable = OSError(errno.EIO, os.strerror(errno.EIO), "font.ttf")
    with (
        pytest.raises(OSError, match=r"font\.ttf") as raised,
        mp4_file(tmp_path / "x.mp4", width=128, height=2, metadata={}),
    ):
        raise unreadable
    assert raised.value is unreadable
    assert list(tmp_path.iterdir()) == []


def test_video_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match=r"cannot write \S+/absent/x\.mp4: no such file"),
        mp4_file(tmp_path / "absent" / "x.mp4", width=128, height=2, metadata={}),
    ):
        pass


def test_video_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, flush, flushed = tmp_path / "x.mp4", os.fsync, []

    def record(descriptor: int) -> None:
        status = os.fstat(descriptor)
        flushed.append((status.st_ino, path.exists()))
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", record)
    with mp4_file(path, width=128, height=2, metadata={}) as write:
        write(np.zeros((2, 128, 3), np.uint8))
    assert flushed == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]


def test_file_that_appears_under_the_name_of_a_video_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.mp4"

    def encode() -> None:
        with mp4_file(path, width=128, height=2, metadata={}) as write:
            write(np.zeros((2, 128, 3), np.uint8))
            path.write_bytes(b"theirs")

    with pytest.raises(UserError, match=r"x\.mp4 exists and is never overwritten"):
        encode()
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {"x.mp4": b"theirs"}


def test_scene_of_a_game_is_made_when_its_turn_comes(
    tiny_run: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = VideoOptions(scale=1, overlay=False)
    agent = load_frozen(tiny_run(), CPU)
    recording = record_checkpoint(agent, episodes=3, options=options, on_progress=lambda *_: None)
    steps = [len(game.trace.actions) for game in recording.games]
    made: list[int] = []

    class Scene(video_rendering._Scene):
        def __init__(self, recording: Recording, game: RecordedGame, place: int) -> None:
            super().__init__(recording, game, place)
            made.append(place)

    monkeypatch.setattr(video_rendering, "_Scene", Scene)
    by_step: dict[int, int] = {}
    video_rendering.render(
        recording, tmp_path / "x.mp4", on_progress=lambda done, _: by_step.setdefault(done, len(made))
    )
    assert (by_step[0], by_step[steps[0] + 1], by_step[sum(steps)]) == (1, 2, 3)


def test_video_in_a_folder_with_a_colon_in_its_name_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "14:30").mkdir()
    monkeypatch.chdir(tmp_path)
    with mp4_file(Path("14:30/x.mp4"), width=128, height=2, metadata={}) as write:
        write(np.zeros((2, 128, 3), np.uint8))
    assert Path("14:30/x.mp4").stat().st_size > 0


def test_video_without_space_is_named_without_its_temporary_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(partial: Path, metadata: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(partial))

    monkeypatch.setattr("atari_dqn.record.video._container", no_space)
    with (
        pytest.raises(UserError, match=rf"^cannot write {tmp_path}/x\.mp4: no space left"),
        mp4_file(tmp_path / "x.mp4", width=128, height=2, metadata={}),
    ):
        pass
