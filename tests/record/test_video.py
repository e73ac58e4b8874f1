import errno
import os
from pathlib import Path

import pytest

from atari_dqn.errors import UserError
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
