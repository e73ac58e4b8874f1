"""Archives as `dqn export` writes them."""

from pathlib import Path

from atari_dqn.evaluation.export import archive_of, newest_video
from atari_dqn.evaluation.frozen_agent import FrozenAgent
from atari_dqn.record.checkpoint_recording import record_checkpoint
from atari_dqn.record.recording import VideoOptions, save_recording
from atari_dqn.run.archive.archive import write_archive


def export(agent: FrozenAgent, path: Path) -> None:
    archive = archive_of(agent, newest_video(agent))
    write_archive(path, archive.agent, archive.parts)


def add_video(agent: FrozenAgent, name: str, data: bytes) -> Path:
    """Write a video of an agent, which has this data, with its recording."""
    agent.run.videos.mkdir(parents=True, exist_ok=True)
    recording = record_checkpoint(agent, options=VideoOptions(scale=2), on_progress=lambda *_: None)
    video = agent.run.videos / f"{name}.mp4"
    save_recording(recording, video.with_suffix(".json"))
    video.write_bytes(data)
    return video
