"""Encode H.264 video in MP4, which browsers play. Requires the extra `record`."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import cv2
import numpy as np
from jaxtyping import UInt8

from atari_dqn.clock import FRAMES_PER_SECOND
from atari_dqn.errors import UserError
from atari_dqn.files.atomic import fsync_directory, fsync_file
from atari_dqn.files.failures import writing
from atari_dqn.files.new_files import place_new

if TYPE_CHECKING:
    from av.container import OutputContainer

ENCODER = "libx264"
_OPTIONS = {"preset": "veryfast", "crf": "21"}
_THREADS = 2
"""Fixed, because the encoded bytes depend on the number of threads."""
WIDTH_UNIT_PIXELS = 128
"""At other widths x264 reads a few bytes beyond its rows, so that the encoded bytes may vary."""
_SMPTE_170M, _LIMITED = 6, 1
"""FFmpeg's constants for the NTSC colour space and luma from 16 to 235, to which OpenCV converts RGB."""

Write = Callable[[UInt8[np.ndarray, "H W 3"]], None]


def require_encoder() -> None:
    """Raise `UserError` with the package to install if videos cannot be encoded."""
    try:
        import av
        import PIL  # noqa: F401 - used by the panel
    except ImportError as error:
        raise UserError(
            f"videos need the package {error.name!r}, which is not installed; pip install 'atari-dqn[record]'"
        ) from error
    if ENCODER not in av.codecs_available:
        raise UserError(
            f"this installation of PyAV has no encoder {ENCODER!r} (H.264); its wheels have: "
            f"pip install --force-reinstall --only-binary av av"
        )


@contextmanager
def mp4_file(path: Path, *, width: int, height: int, metadata: Mapping[str, str]) -> Iterator[Write]:
    """Yield a function that adds an RGB image to a new video; the file appears if the block succeeds.

    60 images per second. `width` must be a multiple of 128, `height` even. Raise `UserError` if the file
    exists or cannot be written.
    """
    assert width % WIDTH_UNIT_PIXELS == 0
    assert height % 2 == 0, "chroma is shared by 2×2 pixels"
    if os.path.lexists(path):
        raise _exists(path)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with writing(path):
            encoder = _Encoder(_container(partial, metadata), width=width, height=height)

        def write(picture: UInt8[np.ndarray, "H W 3"]) -> None:
            with writing(path):
                encoder.write(picture)

        try:
            yield write
            with writing(path):
                encoder.finish()
        finally:
            with writing(path):
                encoder.close()
        with writing(path):
            fsync_file(partial)
            is_placed = place_new(partial, path)
            fsync_directory(path.parent)
        if not is_placed:
            raise _exists(path)
    finally:
        partial.unlink(missing_ok=True)


def _exists(path: Path) -> UserError:
    return UserError(f"{path} exists and is never overwritten; name another file with -o")


def _container(path: Path, metadata: Mapping[str, str]) -> OutputContainer:
    import av

    # faststart: the index comes first, so that browsers play while loading; bitexact: no version, no date.
    options = {"movflags": "+faststart", "fflags": "+bitexact"}
    # an absolute path: FFmpeg takes what stands before a colon in a relative one for a protocol
    container = av.open(str(path.absolute()), "w", format="mp4", options=options)
    container.metadata.update(metadata)
    return container


class _Encoder:
    """The single video stream of a container."""

    def __init__(self, container: OutputContainer, *, width: int, height: int) -> None:
        self._container = container
        # A literal name, from which mypy infers the type of the stream.
        self._stream = container.add_stream("libx264", rate=FRAMES_PER_SECOND, options=dict(_OPTIONS))
        self._pictures = 0
        context = self._stream.codec_context
        context.width, context.height, context.pix_fmt = width, height, "yuv420p"
        context.time_base = Fraction(1, FRAMES_PER_SECOND)
        context.thread_count = _THREADS
        context.colorspace = context.color_primaries = context.color_trc = _SMPTE_170M
        context.color_range = _LIMITED

    def write(self, picture: UInt8[np.ndarray, "H W 3"]) -> None:
        """Encode an image."""
        from av import VideoFrame

        planes = cv2.cvtColor(picture, cv2.COLOR_RGB2YUV_I420).astype(np.uint8, copy=False)
        frame = VideoFrame.from_ndarray(planes, format="yuv420p")
        frame.pts = self._pictures
        self._pictures += 1
        self._container.mux(self._stream.encode(frame))

    def finish(self) -> None:
        """Write the remaining output of the encoder."""
        self._container.mux(self._stream.encode(None))

    def close(self) -> None:
        """Close the file; without `finish` it is not a valid video."""
        self._container.close()
