"""Archives as `dqn export` writes them."""

from pathlib import Path

from atari_dqn.evaluation.export import archive_of, newest_video
from atari_dqn.evaluation.frozen_agent import FrozenAgent
from atari_dqn.run.archive.archive import write_archive


def export(agent: FrozenAgent, path: Path) -> None:
    archive = archive_of(agent, newest_video(agent))
    write_archive(path, archive.agent, archive.parts)
