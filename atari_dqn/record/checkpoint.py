"""A recording of a checkpoint on disk: play, choose games, keep their decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.evaluation.frozen_agent import FrozenAgent
from atari_dqn.evaluation.traces import Tracer
from atari_dqn.record.recorder import best_first, recording_of, source_of
from atari_dqn.record.recording import Look, Recording
from atari_dqn.record.saliency import saliency_of
from atari_dqn.run.scores import score_protocol
from atari_dqn.spec.named_protocols import ProtocolName, with_protocol

OnProgress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is, and of how much."""


def record_checkpoint(
    agent: FrozenAgent,
    *,
    protocol: ProtocolName = "run",
    episodes: int = 1,
    best_of: int | None = None,
    saliency: bool = False,
    look: Look,
    on_progress: OnProgress,
) -> Recording:
    """Play an agent's evaluation and record its first games, or the best `episodes` of `best_of`.

    They are the games that `dqn eval` of the same checkpoint and protocol plays.
    """
    spec = with_protocol(agent.spec, protocol)
    tracer = Tracer()
    played = evaluate(
        agent.network,
        spec,
        episodes=best_of or episodes,
        on_progress=lambda done, total: on_progress("playing", done, total),
        tracer=tracer,
    )
    words = score_protocol(spec, episodes=len(played), checkpoint=agent.choice, rom_md5=agent.info.rom_md5)
    recording = recording_of(
        played,
        tracer,
        spec=spec,
        info=agent.info,
        source=source_of(
            words,
            checkpoint=f"{agent.run.path.resolve().name}/checkpoints/{agent.checkpoint.name}",
            step=agent.step,
            env_frames=agent.env_frames,
        ),
        episodes=best_first(played)[:episodes] if best_of else range(episodes),
        choice=_choice(episodes, best_of),
        look=look,
    )
    return _with_saliency(recording, agent, on_progress) if saliency else recording


def _choice(episodes: int, best_of: int | None) -> str:
    if best_of is None:
        return "the first game" if episodes == 1 else f"the first {episodes} games"
    return f"the best of {best_of}" if episodes == 1 else f"the best {episodes} of {best_of}"


def _with_saliency(recording: Recording, agent: FrozenAgent, on_progress: OnProgress) -> Recording:
    games = []
    for game in recording.games:
        saliency = saliency_of(
            recording,
            game,
            agent.network,
            on_progress=lambda done, total: on_progress("saliency", done, total),
        )
        games.append(replace(game, saliency=saliency))
    return replace(recording, games=tuple(games))
