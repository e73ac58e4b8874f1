"""`dqn eval`."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from atari_dqn.compare.reference.caps import cut_in_words
from atari_dqn.envs.pool import WorkerDiedError
from atari_dqn.errors import HaltedError, InterruptedRunError
from atari_dqn.evaluation.checkpoint_score import (
    CheckpointScore,
    evaluate_checkpoint,
    open_progress,
    save_score,
    score_document,
)
from atari_dqn.evaluation.evaluate import StoppedError
from atari_dqn.evaluation.frozen_agent import FrozenAgent, load_frozen
from atari_dqn.evaluation.progress import EvaluationProgress
from atari_dqn.files.atomic import json_document, prepare_folder
from atari_dqn.formatting import count, percentage
from atari_dqn.machine.devices import resolve_device
from atari_dqn.spec.named_protocols import ProtocolName
from atari_dqn.train.interrupt import SignalGuard

OnProgress = Callable[[int, int], None]

PROTOCOLS: dict[str, tuple[ProtocolName, ...]] = {
    "run": ("run",),
    "classic": ("classic",),
    "modern": ("modern",),
    "both": ("classic", "modern"),
}
"""What each value of `--protocol` asks for."""


def evaluate(
    path: Path,
    *,
    protocol: str,
    episodes: int | None,
    envs: int | None,
    device: str,
    as_json: bool,
    save: bool,
) -> None:
    """Play a checkpoint's evaluation under each protocol asked for; print and keep the scores."""
    agent = load_frozen(path, resolve_device(device))
    if save:
        prepare_folder(agent.run.evaluations)
    results = []
    for name in PROTOCOLS[protocol]:
        result, saved = _score(agent, name, episodes=episodes, envs=envs, save=save)
        results.append(result)
        if not as_json:
            typer.echo(_text(agent, result, saved))
    if as_json:
        document = {"scores": [score_document(agent, result) for result in results]}
        typer.echo(json_document(document).decode().rstrip())


def _score(
    agent: FrozenAgent, name: ProtocolName, *, episodes: int | None, envs: int | None, save: bool
) -> tuple[CheckpointScore, Path | None]:
    """Play an evaluation, or what is missing of one that was interrupted; return its score and file."""
    with ExitStack() as stack:
        kept = (
            stack.enter_context(closing(open_progress(agent, protocol=name, episodes=episodes)))
            if save
            else None
        )
        if kept and kept.finished:
            typer.echo(f"{name} protocol: {_games(kept)} kept from before; the others are played", err=True)
        guard = stack.enter_context(SignalGuard())
        try:
            with progress(f"{name} protocol") as on_progress:
                result = evaluate_checkpoint(
                    agent,
                    protocol=name,
                    episodes=episodes,
                    envs=envs,
                    progress=kept,
                    on_progress=on_progress,
                    stop=lambda: guard.received is not None,
                )
        except StoppedError:
            raise _interrupted(guard.received or signal.SIGINT, kept) from None
        except WorkerDiedError as error:
            raise HaltedError(f"{error}; {_remedy(kept)}") from error
        saved = save_score(agent, result) if save else None
        if kept:
            kept.forget()
        return result, saved


def _games(kept: EvaluationProgress) -> str:
    count = len(kept.finished)
    return f"{count} finished game{'s' * (count != 1)}"


def _interrupted(signal_number: int, kept: EvaluationProgress | None) -> InterruptedRunError:
    """Return the error of an interrupted evaluation, which says what is kept of it."""
    error = InterruptedRunError(signal_number)
    error.add_note(_remedy(kept))
    return error


def _remedy(kept: EvaluationProgress | None) -> str:
    if kept is None:
        return "nothing is kept (--no-save)"
    return f"{_games(kept)} kept; the same command goes on from there"


@contextmanager
def progress(description: str) -> Iterator[OnProgress]:
    """Show a bar on the terminal's error stream, so that the result alone goes to a pipe."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(description, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _text(agent: FrozenAgent, result: CheckpointScore, saved: Path | None) -> str:
    score = result.score
    values = score.row()
    lines = [
        f"{agent.checkpoint} ({agent.spec.game}, {count(agent.env_frames)} frames)",
        f"  return   {score}; median {values['median_return']:g},"
        f" from {values['min_return']:g} to {values['max_return']:g}",
        f"  human    {_human_normalised(result)}",
        f"  length   {values['mean_length_frames']:,.0f} frames on average,"
        f" from {values['min_length_frames']:,} to {values['max_length_frames']:,}",
        f"  endings  {values['game_overs']} by the game, {values['frame_caps']} by the cap",
        f"  protocol {result.name}: {result.protocol.short()}",
        f"           fingerprint {result.protocol.digest()}",
    ]
    return "\n".join(lines + ([f"  kept in  {saved}"] if saved else []))


def _human_normalised(result: CheckpointScore) -> str:
    reference = result.reference
    if reference is None:
        return "not normalised: no table has the game"
    if result.human_normalised is None:
        score, cap = result.score, result.protocol.max_episode_frames
        return f"not normalised: {cut_in_words(score.frame_caps, score.episodes, cap)}"
    return (
        f"{percentage(result.human_normalised)} of the way from chance ({reference.random:g}) to a person"
        f" ({reference.human:g}), by table {reference.table}"
    )
