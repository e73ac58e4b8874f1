"""Record games of a checkpoint on disk: evaluate, select games, keep their decisions; find recordings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from atari_dqn.agent.memory import RecurrentQNetwork
from atari_dqn.errors import UserError
from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.evaluation.export import newest_first
from atari_dqn.evaluation.frozen_agent import FrozenAgent
from atari_dqn.evaluation.traces import Tracer
from atari_dqn.record.recorder import best_first, recording_of, source_of
from atari_dqn.record.recording import Recording, Source, VideoOptions, load_recording
from atari_dqn.record.saliency import saliency_of
from atari_dqn.run.checkpoint.names import files_of_step
from atari_dqn.run.scores import score_protocol
from atari_dqn.spec.named_protocols import ProtocolName, with_protocol
from atari_dqn.spec.protocol import Protocol

OnProgress = Callable[[str, int, int], None]
"""A callback with the current activity, the part that is done and the total."""


def record_checkpoint(
    agent: FrozenAgent,
    *,
    protocol: ProtocolName = "run",
    episodes: int = 1,
    best_of: int | None = None,
    saliency: bool = False,
    options: VideoOptions,
    on_progress: OnProgress,
) -> Recording:
    """Evaluate an agent and record its first `episodes` games, or the best `episodes` of `best_of`.

    The games are those that `dqn eval` plays for the same checkpoint and protocol. `UserError` for saliency
    maps of a network with memory, whose values depend on more than the frames.
    """
    if saliency and isinstance(agent.network, RecurrentQNetwork):
        raise UserError("--saliency: saliency maps are not defined for a network with memory; leave it out")
    spec = with_protocol(agent.spec, protocol)
    tracer = Tracer()
    played = evaluate(
        agent.network,
        spec,
        episodes=best_of or episodes,
        on_progress=lambda done, total: on_progress("playing", done, total),
        tracer=tracer,
    )
    evaluated_protocol = score_protocol(
        spec, episodes=len(played), checkpoint=agent.choice, rom_md5=agent.info.rom_md5
    )
    recording = recording_of(
        played,
        tracer,
        spec=spec,
        info=agent.info,
        source=_source(agent, evaluated_protocol),
        episodes=best_first(played)[:episodes] if best_of else range(episodes),
        choice=_choice(episodes, best_of),
        options=options,
    )
    return _with_saliency(recording, agent, on_progress) if saliency else recording


def _source(agent: FrozenAgent, protocol: Protocol) -> Source:
    return source_of(
        protocol,
        checkpoint=agent.name,
        step=agent.step,
        env_frames=agent.env_frames,
        weights_sha256=agent.weights_sha256,
    )


def newest_recording(agent: FrozenAgent) -> Recording:
    """Load the newest recording of an agent with exactly these weights; `UserError` if there is none."""
    for path in newest_first(files_of_step(agent.run.videos, agent.step, ".json")):
        found = load_recording(path)
        source = found.source
        if agent.has_weights(source.weights_sha256, game=found.game, seed=found.seed, step=source.step):
            return found
    raise UserError(
        f"{agent.run.videos}: no game of these weights (step {agent.step:,}) is recorded; "
        "`dqn record` records one, with --saliency also its saliency maps"
    )


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
