"""Run a shell command of the user when a run finishes, halts, fails, is interrupted or warns."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from atari_dqn.telemetry.events import ENDINGS, Event, GateChanged, Notice
from atari_dqn.telemetry.sinks.target import Target

COMMAND_SECONDS = 20.0


class NotifySink:
    """Runs a shell command with the event in environment variables.

    DQN_EVENT (finished, halted, failed, interrupted or warning), DQN_MESSAGE, DQN_RUN_NAME, DQN_RUN_DIR,
    DQN_GAME, DQN_ENV_FRAMES. Its output is discarded. A command that fails or takes longer than 20 seconds
    is an error.
    """

    def __init__(self, command: str, target: Target) -> None:
        self._command, self._target = command, target

    def handle(self, event: Event) -> None:
        """Run the command if the event is one of those named above."""
        if isinstance(event, Notice) and event.kind in ENDINGS:
            self._run(ENDINGS[event.kind], event.message, event.env_frames)
        elif isinstance(event, GateChanged) and event.state == "warned":
            self._run("warning", f"{event.gate}: {event.message}", event.env_frames)

    def close(self) -> None:
        """Do nothing: no command is running."""

    def _run(self, event: str, message: str, env_frames: int) -> None:
        facts = {
            "EVENT": event,
            "MESSAGE": message.replace("\0", ""),
            "RUN_NAME": self._target.name,
            "RUN_DIR": str(Path(self._target.directory).resolve()),
            "GAME": str(self._target.values["game"]),
            "ENV_FRAMES": str(env_frames),
        }
        environment = os.environ | {f"DQN_{name}": value for name, value in facts.items()}
        with subprocess.Popen(  # noqa: S602 - the user's own command, in their own shell
            self._command,
            shell=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C must reach the training process only
        ) as shell:
            _wait(shell)


def _wait(shell: subprocess.Popen[bytes]) -> None:
    """Wait for a command; kill its process group after a timeout."""
    try:
        exit_code = shell.wait(COMMAND_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(shell.pid, signal.SIGKILL)
        raise
    if exit_code:
        raise subprocess.CalledProcessError(exit_code, shell.args)
