"""`dqn eval`."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atari_dqn.cli.options import (
    MOST_EPISODES,
    CheckpointPath,
    DeviceOption,
    EvaluationProtocol,
    JsonOption,
    check_run,
    choice,
    integer,
)
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.errors import InfrastructureError, InterruptedRunError
from atari_dqn.formatting import count, percentage, plural, wrapped
from atari_dqn.machine.devices import check_device_name, resolve_device

if TYPE_CHECKING:
    from atari_dqn.evaluation.checkpoint_score import CheckpointScore, SavedScore
    from atari_dqn.evaluation.frozen_agent import FrozenAgent
    from atari_dqn.evaluation.progress import EvaluationProgress
    from atari_dqn.spec.named_protocols import ProtocolName

EXAMPLES = """\
dqn eval outputs/pong_quick_seed1
dqn eval outputs/pong_quick_seed1/checkpoints/best --protocol both"""

_NO_SAVE = "with --no-save the games are played and the score is only printed"

_PROTOCOLS: dict[EvaluationProtocol, tuple[ProtocolName, ...]] = {
    EvaluationProtocol.RUN: ("run",),
    EvaluationProtocol.CLASSIC: ("classic",),
    EvaluationProtocol.MODERN: ("modern",),
    EvaluationProtocol.BOTH: ("classic", "modern"),
}


def _protocol_names() -> list[str]:
    return list(EvaluationProtocol)


ProtocolOption = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="run: the run's own; classic: Track A's; modern: Track B's; or both of these.",
        autocompletion=_protocol_names,
    ),
]


def evaluate(
    path: CheckpointPath,
    episodes: Annotated[
        str | None,
        typer.Option(metavar="N", help="Games to play. Default: as many as in the run's full evaluations."),
    ] = None,
    protocol: ProtocolOption = "run",
    envs: Annotated[
        str | None, typer.Option(metavar="N", help="Games played in parallel; does not change the result.")
    ] = None,
    device: DeviceOption = "auto",
    json: JsonOption = False,
    save: Annotated[
        bool, typer.Option("--save/--no-save", help="Store the score in the run directory.")
    ] = True,
) -> None:
    """Evaluate a checkpoint and store its score in the run directory."""
    num_episodes = integer("--episodes", episodes, high=MOST_EPISODES)
    num_envs = integer("--envs", envs)
    names = _PROTOCOLS[choice("--protocol", protocol, EvaluationProtocol)]
    check_device_name(device)
    check_run(path)
    with interrupts_blocked():
        from atari_dqn.evaluation.checkpoint_score import score_document
        from atari_dqn.evaluation.frozen_agent import load_frozen
        from atari_dqn.files.atomic import json_document, prepare_folder

    agent = load_frozen(path, resolve_device(device))
    if save:
        prepare_folder(agent.run.evaluations, remedy=_NO_SAVE)
    results = []
    for result, saved in _scores(agent, names, episodes=num_episodes, envs=num_envs, save=save):
        results.append(result)
        if not json:
            typer.echo(_text(agent, result, saved, given=path))
    if json:
        document = {"scores": [score_document(agent, result) for result in results]}
        typer.echo(json_document(document).decode().rstrip())


def _scores(
    agent: FrozenAgent,
    names: Sequence[ProtocolName],
    *,
    episodes: int | None,
    envs: int | None,
    save: bool,
) -> Iterator[tuple[CheckpointScore, SavedScore | None]]:
    """Evaluate an agent under each of the protocols; yield each score, with its file if it is saved."""
    from atari_dqn.evaluation.checkpoint_score import save_score

    opened: list[EvaluationProgress] = []
    with ExitStack() as stack:
        for name in names:
            if save:
                opened.append(stack.enter_context(_progress(agent, name, episodes)))
            result = _score(agent, name, opened[-1] if save else None, episodes=episodes, envs=envs)
            yield result, save_score(agent, result) if save else None
        for kept in opened:  # only now, so that after an interruption no protocol is played again
            kept.forget()


def _progress(
    agent: FrozenAgent, name: ProtocolName, episodes: int | None
) -> AbstractContextManager[EvaluationProgress]:
    """Open the file of the finished games of an evaluation, and print how many it has."""
    from atari_dqn.evaluation.checkpoint_score import open_progress

    kept = open_progress(agent, protocol=name, episodes=episodes)
    if kept.finished:
        typer.echo(f"{name} protocol: {_games(kept)} kept from before and not played again", err=True)
    return closing(kept)


def _score(
    agent: FrozenAgent,
    name: ProtocolName,
    kept: EvaluationProgress | None,
    *,
    episodes: int | None,
    envs: int | None,
) -> CheckpointScore:
    """Play an evaluation, or the rest of an interrupted one, and return its score."""
    from atari_dqn.envs.pool import WorkerDiedError
    from atari_dqn.evaluation.checkpoint_score import evaluate_checkpoint
    from atari_dqn.evaluation.evaluate import StoppedError
    from atari_dqn.train.interrupt import SignalGuard
    from atari_dqn.view.bar import progress_bar

    activity = f"{name} protocol"
    with SignalGuard() as guard:
        try:
            with progress_bar(width=len(activity)) as on_progress:
                return evaluate_checkpoint(
                    agent,
                    protocol=name,
                    episodes=episodes,
                    envs=envs,
                    progress=kept,
                    on_progress=lambda done, total: on_progress(activity, done, total),
                    stop=lambda: guard.received is not None,
                )
        except StoppedError:
            raise _interrupted(guard.received or signal.SIGINT, kept) from None
        except WorkerDiedError as error:
            raise InfrastructureError(f"{error}; {_remedy(kept)}") from error


def _games(kept: EvaluationProgress) -> str:
    num_games = len(kept.finished)
    return plural(num_games, "finished game")


def _interrupted(signal_number: int, kept: EvaluationProgress | None) -> InterruptedRunError:
    """Build the error of an interrupted evaluation, with a note on the games that are kept."""
    error = InterruptedRunError(signal_number)
    error.add_note(_remedy(kept))
    return error


def _remedy(kept: EvaluationProgress | None) -> str:
    if kept is None:
        return "nothing is kept (--no-save)"
    return f"{_games(kept)} kept; the same command goes on from there"


def _text(agent: FrozenAgent, result: CheckpointScore, saved: SavedScore | None, *, given: Path) -> str:
    """Format a score; paths in it are relative if that of the command line, `given`, is."""
    score = result.score
    values = score.row()
    lines = [
        f"{_as_given(agent.checkpoint, given)} ({agent.spec.game}, {count(agent.env_frames)} frames)",
        f"  return   {score}; median {values['median_return']:g},"
        f" from {values['min_return']:g} to {values['max_return']:g}",
        f"  human    {_human_normalised(result)}",
        f"  length   {values['mean_length_frames']:,.0f} frames on average,"
        f" from {values['min_length_frames']:,} to {values['max_length_frames']:,}",
        f"  endings  {values['game_overs']} by the game, {values['frame_caps']} by the cap",
        wrapped(f"{result.name}: {result.protocol.short()}", first_indent="  protocol ", indent=" " * 11),
        f"           fingerprint {result.protocol.digest()}",
    ]
    if saved:
        place = _as_given(saved.path, given)
        lines.append(f"  kept in  {place}{', where it was already' if saved.kept_before else ''}")
    return "\n".join(lines)


def _as_given(path: Path, given: Path) -> Path:
    """Return a path relative to the current folder if another one is relative, otherwise as it is."""
    return path if given.is_absolute() else Path(os.path.relpath(path))


def _human_normalised(result: CheckpointScore) -> str:
    from atari_dqn.compare.reference.caps import cut_in_words

    reference = result.reference
    if reference is None:
        return "not normalised: no table has the game"
    if result.protocol.flicker_probability > 0:
        return "not normalised: frames flicker, which is another game"
    if result.human_normalised is None:
        score, cap = result.score, result.protocol.max_episode_frames
        cut = cut_in_words(score.frame_caps, score.episodes, cap)
        if result.comparable:
            cut += f", but not those of people ({reference.table}: {reference.cap_frames:,} frames)"
        return f"not normalised: {cut}"
    return (
        f"{percentage(result.human_normalised)} normalised: random {reference.random:g},"
        f" human {reference.human:g}, table {reference.table}"
    )
