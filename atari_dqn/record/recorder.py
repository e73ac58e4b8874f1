"""Build a recording of some games of a traced evaluation."""

from __future__ import annotations

from collections.abc import Sequence

from atari_dqn.evaluation.evaluate import STREAM, evaluation_env
from atari_dqn.evaluation.traces import Tracer
from atari_dqn.record.recording import RecordedGame, Recording, Source, VideoOptions
from atari_dqn.run.scores import EvaluationEpisode
from atari_dqn.spec.protocol import Protocol
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo


def recording_of(
    played: Sequence[EvaluationEpisode],
    tracer: Tracer,
    *,
    spec: Spec,
    info: GameInfo,
    source: Source,
    episodes: Sequence[int],
    choice: str,
    options: VideoOptions,
) -> Recording:
    """Build the recording of the games with the numbers `episodes`."""
    return Recording(
        game=spec.game,
        seed=spec.seed,
        stream=STREAM,
        env=evaluation_env(spec),
        rom_md5=info.rom_md5,
        action_names=info.action_names,
        source=source,
        choice=choice,
        options=options,
        games=tuple(
            RecordedGame(episode=episode, result=played[episode], trace=tracer.trace(episode))
            for episode in episodes
        ),
    )


def source_of(
    protocol: Protocol, *, checkpoint: str, step: int, env_frames: int, weights_sha256: str
) -> Source:
    """Describe the checkpoint and the protocol of a recording."""
    return Source(
        checkpoint=checkpoint,
        step=step,
        env_frames=env_frames,
        protocol=protocol.short(),
        protocol_digest=protocol.digest(),
        epsilon=protocol.epsilon,
        weights_sha256=weights_sha256,
    )


def best_first(played: Sequence[EvaluationEpisode]) -> list[int]:
    """Return the episode numbers sorted by decreasing return, ties by number."""
    return sorted(range(len(played)), key=lambda episode: -played[episode].episode_return)


def median_game(played: Sequence[EvaluationEpisode]) -> int:
    """Return the episode number of the median return, or of the lower one of two."""
    return best_first(played)[len(played) // 2]
