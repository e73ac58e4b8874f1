"""Log metrics over emulator frames and videos to Weights & Biases; resumes continue the same W&B run."""

from __future__ import annotations

import os
import secrets
from netrc import NetrcParseError, netrc
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from atari_dqn.errors import UserError
from atari_dqn.telemetry.events import Event, GateChanged, Notice, Row
from atari_dqn.telemetry.sinks.scalars import distributions, gate_scalars, row_scalars
from atari_dqn.telemetry.sinks.sent_rows import SentRows
from atari_dqn.telemetry.sinks.target import Target
from atari_dqn.telemetry.sinks.video_frames import NewVideos

STATE = "wandb.json"
_PROJECT = "atari_dqn"
_SERVER = "https://api.wandb.ai"
_OFFLINE = {"offline", "dryrun", "disabled"}


def require_key() -> None:
    """Raise `UserError` if there is no W&B key, so that W&B does not prompt for one during the run.

    The key is not validated, which would need the network.
    """
    if os.environ.get("WANDB_MODE") not in _OFFLINE and not _has_key():
        raise UserError(
            "--sink wandb: no key found; run `wandb login`, set WANDB_API_KEY, or set WANDB_MODE=offline"
        )


def _has_key() -> bool:
    if any(os.environ.get(name) for name in ("WANDB_API_KEY", "WANDB_IDENTITY_TOKEN_FILE")):
        return True
    file = Path(os.environ.get("NETRC", Path.home() / ".netrc"))
    host = urlsplit(os.environ.get("WANDB_BASE_URL", _SERVER)).hostname or ""
    try:
        return netrc(file).authenticators(host) is not None
    except (OSError, NetrcParseError):
        return False


class WandbSink:
    """Logs to a W&B run whose id is recorded in the run directory.

    The environment variables of W&B apply: WANDB_PROJECT, WANDB_ENTITY, WANDB_MODE, … A row that was sent
    before a resume is not sent again: it would be the same.
    """

    def __init__(self, target: Target) -> None:
        import wandb

        self._wandb = wandb
        self._sent = SentRows(target.directory / STATE)
        self._sent.begin(self._sent.run_id or secrets.token_hex(8))
        self._videos = NewVideos(target.directory, frame_skip=int(target.values["env.frame_skip"]))
        self._finished = False
        self._run: Any = wandb.init(
            project=os.environ.get("WANDB_PROJECT", _PROJECT),
            id=self._sent.run_id,
            resume="allow",
            name=target.name,
            tags=[f"track {target.track_label}", str(target.values["game"])],
            config=dict(target.values),
            settings=_settings(target.directory),
        )
        self._run.define_metric("env_frames")
        self._run.define_metric("*", step_metric="env_frames")

    def handle(self, event: Event) -> None:
        """Log an event."""
        if isinstance(event, Row):
            if self._sent.is_new(event):
                self._log(row_scalars(event), int(event.values["env_frames"]))
        elif isinstance(event, GateChanged):
            self._log(gate_scalars(event), event.env_frames)
        elif isinstance(event, Notice):
            self._notice(event)

    def close(self) -> None:
        """Finish uploading; an unfinished run gets exit code 1, which marks it as resumable."""
        self._sent.save()
        self._run.finish(exit_code=0 if self._finished else 1)

    def _notice(self, notice: Notice) -> None:
        self._finished |= notice.kind == "finished"
        media: dict[str, Any] = {f"notice/{notice.kind}": notice.message}
        for name, values in distributions(notice).items():
            media[name] = self._wandb.Histogram(values)
        self._log(media, notice.env_frames)
        for env_frames, video in self._videos.fresh():
            self._log({"video": self._wandb.Video(str(video), format="mp4")}, env_frames)
        self._sent.save()

    def _log(self, values: dict[str, Any], env_frames: int) -> None:
        self._run.log({**values, "env_frames": env_frames})


def _settings(directory: Path) -> Any:
    """Return settings with which W&B prints nothing and collects nothing but what is logged."""
    import wandb

    return wandb.Settings(
        mode=os.environ.get("WANDB_MODE", "online"),  # type: ignore[arg-type]
        root_dir=str(directory),
        silent=True,
        console="off",
        save_code=False,
        disable_git=True,
        x_disable_meta=True,
        x_disable_stats=True,
    )
