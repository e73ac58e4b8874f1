"""What the videos of full evaluations cost training: emulator frames lost to one, as a share of a period's.

Track A trains on Pong alone and while a process makes a video, in turns. What training loses
for each processor second of that process, times the seconds a video takes, is what one costs. The video is of
a game of 18,000 frames, as long as the paper's cap lets it be; a period is the 2,000,000 frames between two.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from atari_dqn.record.recording import save_recording
from atari_dqn.spec.loader import load_spec
from contender import SETTINGS, measure
from hardware import circumstances
from record import SPEC, recording, with_its_return
from tracks import GAME, OURS, TRACK_A

import psutil

RECORDED_FRAMES = 3_600
"""Of random play, which loses no whole game in them."""
GAME_FRAMES, PERIOD_FRAMES = 18_000, 2_000_000


def recorded_game(path: Path) -> Path:
    """Write the recording of a minute of random play."""
    spec = load_spec(SPEC, [f"evaluation.max_episode_frames={RECORDED_FRAMES}", "env.noop_max_frames=0"]).spec
    save_recording(with_its_return(recording(spec, RECORDED_FRAMES // spec.env.frame_skip)), path)
    return path


def processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def measure_during_video(game: Path, *, seconds: float, threads: int) -> dict[str, float]:
    """Return training's speed while a video is made, and the processor time that took each second."""
    with subprocess.Popen([sys.executable, "-m", "atari_dqn.record", str(game)]) as maker:
        process = psutil.Process(maker.pid)
        began, used = time.perf_counter(), processor_seconds(process)
        speed = measure(OURS[TRACK_A], seconds=seconds, threads=threads)["frames_per_second"]
        used, elapsed = processor_seconds(process) - used, time.perf_counter() - began
        assert maker.poll() is None, "the video was done too soon; ask for fewer --seconds"
        maker.kill()
    return {"frames_per_second": speed, "processor_share": used / elapsed}


def video_processor_seconds(game: Path) -> float:
    """Return the processor time of a video of the longest game, by that of a minute alone."""
    before = os.times()
    subprocess.run([sys.executable, "-m", "atari_dqn.record", str(game)], check=True)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return used * GAME_FRAMES / RECORDED_FRAMES


def compare(*, rounds: int, seconds: float, threads: int) -> dict[str, object]:
    """Return each round's figures, and what a video costs by their medians."""
    alone, during_video = [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            game = recorded_game(Path(folder) / f"{number}.json")
            alone.append(measure(OURS[TRACK_A], seconds=seconds, threads=threads)["frames_per_second"])
            during_video.append(measure_during_video(game, seconds=seconds, threads=threads))
        needed = video_processor_seconds(recorded_game(Path(folder) / "whole.json"))
    lost = statistics.median(
        (by_itself - round_["frames_per_second"]) / round_["processor_share"]
        for by_itself, round_ in zip(alone, during_video, strict=True)
    )
    return {
        "alone_frames_per_second": alone,
        "during_a_video": during_video,
        "frames_lost_per_processor_second": lost,
        "video_processor_seconds": needed,
        "share_of_training": lost * needed / PERIOD_FRAMES,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement of training")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of torch")
    options = parser.parse_args()
    result = compare(rounds=options.rounds, seconds=options.seconds, threads=options.threads)
    settings = {**SETTINGS, "game": GAME, "game_frames": GAME_FRAMES, "period_frames": PERIOD_FRAMES}
    report = {"settings": settings, **circumstances(), **result}
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
