"""`dqn eval`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import Progress

from atari_dqn.devices import resolve_device
from atari_dqn.evaluate_checkpoint import CheckpointScore, evaluate_checkpoint
from atari_dqn.files import json_document


def evaluate(path: Path, *, episodes: int | None, device: str, as_json: bool) -> None:
    """Play a checkpoint's evaluation and print its score with its protocol."""
    with _progress() as on_progress:
        result = evaluate_checkpoint(
            path, episodes=episodes, device=resolve_device(device), on_progress=on_progress
        )
    typer.echo(json_document(_document(result)).decode().rstrip() if as_json else _text(result))


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    """Show a bar on the terminal's error stream, so that the result alone goes to a pipe."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("episodes")
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _document(result: CheckpointScore) -> dict[str, object]:
    return {
        "checkpoint": str(result.checkpoint),
        "step": result.step,
        "env_frames": result.env_frames,
        **result.score.row(),
        "returns": result.score.returns,
        "lengths_frames": result.score.lengths_frames,
        "end_reasons": result.score.end_reasons,
        "protocol": asdict(result.protocol),
        "protocol_digest": result.protocol.digest(),
    }


def _text(result: CheckpointScore) -> str:
    score = result.score
    return "\n".join(
        [
            f"{result.checkpoint} ({result.env_frames:,} frames)",
            f"  return  {score}, from {min(score.returns):g} to {max(score.returns):g}",
            f"  length  {sum(score.lengths_frames) / score.episodes:,.0f} frames;"
            f" {score.end_reasons.count('game_over')} ended by the game,"
            f" {score.end_reasons.count('frame_cap')} by the cap",
            f"  under   {result.protocol.short()}",
            f"          fingerprint {result.protocol.digest()}",
        ]
    )
