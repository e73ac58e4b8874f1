"""How fast a video is made: Pong with its panel, from a recording to a file, compared with real time."""

import argparse
import os
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from atari_dqn.clock import FRAMES_PER_SECOND
from atari_dqn.envs.games import game_info
from atari_dqn.evaluation.traces import Tracer
from atari_dqn.files.atomic import write_json_atomically
from atari_dqn.record.playback import playback
from atari_dqn.record.recorder import recording_of
from atari_dqn.record.recording import RecordedGame, Recording, Source, VideoOptions
from atari_dqn.record.video_rendering import render
from atari_dqn.rng import numpy_stream
from atari_dqn.run.scores import EvaluationEpisode
from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.schema import Spec
from hardware import circumstances

import numpy as np

SPEC = Path(__file__).parents[1] / "runs" / "pong_trackA.toml"


def recording(spec: Spec, steps: int) -> Recording:
    """Return the recording of a game that is cut after so many steps of random actions and values."""
    info, draws, tracer = game_info(spec), numpy_stream(spec.seed, "benchmark"), Tracer()
    for _ in range(steps):
        values = draws.normal(size=info.num_actions).astype(np.float32)
        tracer.record(0, action=int(draws.integers(info.num_actions)), explored=False, values=values)
    source = Source(checkpoint="", step=0, env_frames=0, protocol="", protocol_digest="", epsilon=0.05)
    frames = steps * spec.env.frame_skip
    played = [EvaluationEpisode(episode_return=0.0, length_frames=frames, end_reason="frame_cap")]
    return recording_of(
        played,
        tracer,
        spec=spec,
        info=info,
        source=source,
        episodes=[0],
        choice="a benchmark",
        options=VideoOptions(),
    )


def with_its_return(drawn: Recording) -> Recording:
    """Return the recording with the return that its actions come to, which playing it again checks."""
    game: RecordedGame = drawn.games[0]
    score = 0.0
    moments = playback(drawn, game)
    for moment in moments:
        score = moment.score
        if moment.step == len(game.trace.actions) - 1:
            break
    return replace(drawn, games=(replace(game, result=replace(game.result, episode_return=score)),))


def measure(video: Recording, path: Path) -> dict[str, float]:
    """Make a video and return what it took."""
    began, used = time.perf_counter(), time.process_time()
    render(video, path)
    elapsed, processor = time.perf_counter() - began, time.process_time() - used
    frames = video.games[0].result.length_frames
    return {
        "frames_per_second": frames / elapsed,
        "times_real_time": frames / elapsed / FRAMES_PER_SECOND,
        "processor_seconds_per_minute_of_video": processor / (frames / FRAMES_PER_SECOND / 60),
        "megabytes_per_minute_of_video": path.stat().st_size / 1e6 / (frames / FRAMES_PER_SECOND / 60),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--frames", type=int, default=3600)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    spec = load_spec(
        SPEC, [f"evaluation.max_episode_frames={arguments.frames}", "env.noop_max_frames=0"]
    ).spec
    video = with_its_return(recording(spec, arguments.frames // spec.env.frame_skip))
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        rounds = [measure(video, Path(folder) / f"{place}.mp4") for place in range(arguments.rounds)]
    medians = {name: statistics.median(row[name] for row in rounds) for name in rounds[0]}
    write_json_atomically(
        arguments.out,
        {**circumstances(), "load_before": load, "cores": len(os.sched_getaffinity(0)),
         "frames": arguments.frames, "rounds": rounds, "medians": medians},
    )  # fmt: skip
    print(medians, "load", load)


if __name__ == "__main__":
    main()
