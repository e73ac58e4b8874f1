"""How the replay's frames are best compressed: codecs and levels on frames of real games.

Frames of random play, of one environment and of eight, as segments hold them (run/checkpoint/segments.py), as
they are and as differences (XOR) to the frame before on the same environment. Seconds are of one core's own
time.
"""

import argparse
import importlib.util
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

from atari_dqn.replay.rows import PIECE_FRAMES
from hardware import circumstances
from random_play import play

import numpy as np
import zstandard

GAMES = ("pong", "breakout", "seaquest")
ENVS = (1, 8)
ZSTD_LEVELS = (-5, -1, 1, 2, 3, 5)
ROUNDS = 3

Codec = tuple[Callable[[bytes], bytes], Callable[[bytes], bytes]]


def codecs() -> dict[str, Codec]:
    """List the codecs to compare; lz4 only where it is installed."""
    found: dict[str, Codec] = {
        f"zstd {level}": (
            zstandard.ZstdCompressor(level=level).compress,
            zstandard.ZstdDecompressor().decompress,
        )
        for level in ZSTD_LEVELS
    }
    if importlib.util.find_spec("lz4") is not None:
        import lz4.block

        found["lz4"] = (lz4.block.compress, lz4.block.decompress)
    return found


def differences(frames: np.ndarray) -> np.ndarray:
    """Return each frame but the first XOR the one before."""
    return np.concatenate([frames[:1], frames[1:] ^ frames[:-1]])


def seconds_of(work: Callable[[], object]) -> float:
    """Return the median of a few goes, in seconds of this process's own time."""

    def once() -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    return median(once() for _ in range(ROUNDS))


def measure(data: bytes, codec: Codec) -> dict[str, float]:
    """Return how small a codec makes some bytes, and how fast it is both ways."""
    compress, decompress = codec
    small = compress(data)
    assert decompress(small) == data
    return {
        "ratio": len(data) / len(small),
        "compress_mb_per_second": len(data) / 1e6 / seconds_of(lambda: compress(data)),
        "decompress_mb_per_second": len(data) / 1e6 / seconds_of(lambda: decompress(small)),
    }


def rows() -> Iterator[dict[str, object]]:
    """Yield one measurement after the other."""
    for game in GAMES:
        for envs in ENVS:
            frames = play(game, envs=envs, steps=PIECE_FRAMES // envs)
            for form, data in (("frames", frames.tobytes()), ("xor", differences(frames).tobytes())):
                for name, codec in codecs().items():
                    yield {"game": game, "envs": envs, "form": form, "codec": name} | measure(data, codec)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    options = parser.parse_args()
    measured = list(rows())
    report = {**circumstances(), "piece_cells": PIECE_FRAMES, "rows": measured}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    for row in measured:
        print(
            f"{row['game']:9} {row['envs']} {row['form']:6} {row['codec']:8} {row['ratio']:6.1f}x "
            f"{row['compress_mb_per_second']:6.0f} MB/s"
        )


if __name__ == "__main__":
    main()
