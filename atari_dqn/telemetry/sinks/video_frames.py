"""Find the new videos of a run, and convert them to GIF for viewers that do not play video."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from atari_dqn.clock import steps_to_frames
from atari_dqn.telemetry.sinks.background_sink import LeftOutError

if TYPE_CHECKING:
    from PIL.Image import Image

_GIF_PERIOD_FRAMES = 6
"""Every sixth of 60 frames per second is kept."""
_GIF_FRAMES = 100
_GIF_PIXELS = 320
_GIF_MILLISECONDS = 100


class UnreadableVideoError(Exception):
    """A video cannot be read, such as one that is being copied; the message has the reason."""


class NewVideos:
    """Finds the videos of a run that are new since the last call, also under the name of a removed one."""

    def __init__(self, run: Path, *, frame_skip: int) -> None:
        self._run, self._frame_skip = run, frame_skip
        self._seen = {version for path in videos_of(run) if (version := _version(path))}

    def fresh(self) -> Iterator[tuple[int, Path]]:
        """Yield each new video with the emulator frames of its checkpoint."""
        for path in videos_of(self._run):
            version = _version(path)
            if version is not None and version not in self._seen:
                self._seen.add(version)
                yield steps_to_frames(video_step(path), frame_skip=self._frame_skip), path

    def send_fresh(self, send: Callable[[int, Path], None]) -> None:
        """Send each new video, with the emulator frames of its checkpoint.

        After the others are sent, raise `LeftOutError` with those for which `send` raises
        `UnreadableVideoError`.
        """
        unreadable = []
        for env_frames, video in self.fresh():
            try:
                send(env_frames, video)
            except UnreadableVideoError as error:
                unreadable.append(f"{video.relative_to(self._run)}: {error}")
        if unreadable:
            raise LeftOutError("; ".join(unreadable))

    def forget_after(self, step: int) -> None:
        """Count the videos of later steps as new."""
        self._seen = {version for version in self._seen if video_step(version[0]) <= step}


def videos_of(run: Path) -> list[Path]:
    """Return the finished videos of a run, in the order of their checkpoints."""
    found = [*run.glob("videos/*.mp4"), *run.glob("checkpoints/step_*/*.mp4")]
    return sorted((path for path in found if not path.name.startswith(".")), key=_order)


def video_step(path: Path) -> int:
    """Return the agent step in the name of a video or its folder; 0 if there is none."""
    match = re.search(r"step_(\d+)", path.name) or re.search(r"step_(\d+)", path.parent.name)
    return int(match[1]) if match else 0


def gif(video: Path) -> tuple[int, int, bytes]:
    """Return height, width and a looping GIF of the first 10 seconds of a video, at 10 frames per second.

    `UnreadableVideoError` if it cannot be read.
    """
    import av

    try:
        # An absolute path: FFmpeg takes what stands before a colon in a relative one for a protocol. A title
        # may be damaged too.
        with av.open(str(video.absolute()), metadata_errors="replace") as container:
            pictures = [_small(frame.to_image()) for frame in _gif_frames(container)]
    except (av.FFmpegError, OSError) as error:
        raise UnreadableVideoError(error.strerror or str(error)) from error
    if not pictures:
        raise UnreadableVideoError("it has no frames")
    first, *rest = pictures
    data = io.BytesIO()
    first.save(data, "GIF", save_all=True, append_images=rest, duration=_GIF_MILLISECONDS, loop=0)
    return first.height, first.width, data.getvalue()


def _gif_frames(container: Any) -> Iterator[Any]:
    """Yield the frames of an opened video that its GIF has; none if it has sound only."""
    for stream in container.streams.video[:1]:
        frames = container.decode(stream)
        yield from islice(frames, 0, _GIF_FRAMES * _GIF_PERIOD_FRAMES, _GIF_PERIOD_FRAMES)


def _small(picture: Image) -> Image:
    picture.thumbnail((_GIF_PIXELS, _GIF_PIXELS))
    return picture


def _version(path: Path) -> tuple[Path, int, int] | None:
    """Identify a file among those of its name, by its inode and its time; return None if it is removed."""
    try:
        status = path.stat()
    except OSError:
        return None
    return path, status.st_ino, status.st_mtime_ns


def _order(path: Path) -> tuple[int, str]:
    return video_step(path), str(path)
