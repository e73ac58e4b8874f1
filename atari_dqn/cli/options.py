"""Arguments and options that several commands share, and the words that options take."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

SpecPath = Annotated[Path, typer.Argument(metavar="SPEC.toml", help="The run's spec.")]
RunPath = Annotated[Path, typer.Argument(metavar="RUN_DIR", help="A directory that `dqn train` made.")]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key: --set learner.batch_size=64."),
]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")]
SinkOption = Annotated[
    list[str] | None,
    typer.Option("--sink", metavar="NAME", help="Report to tensorboard, wandb or parquet; repeatable."),
]
NotifyOption = Annotated[
    str | None,
    typer.Option(metavar="COMMAND", help="Run a shell command when the run ends or warns: see DQN_EVENT."),
]
PlainOption = Annotated[bool, typer.Option("--plain", help="One line a period instead of the live view.")]

CheckpointPath = Annotated[
    Path,
    typer.Argument(metavar="RUN_DIR|CHECKPOINT", help="A run, for its latest checkpoint, or one of them."),
]


class RecordingProtocol(StrEnum):
    """What `--protocol` of `dqn record` may be."""

    RUN = "run"
    CLASSIC = "classic"
    MODERN = "modern"


class EvaluationProtocol(StrEnum):
    """What `--protocol` of `dqn eval` may be."""

    RUN = "run"
    CLASSIC = "classic"
    MODERN = "modern"
    BOTH = "both"
