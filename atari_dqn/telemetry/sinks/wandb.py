"""Log metrics over emulator frames and videos to Weights & Biases; resumes continue the same W&B run."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from netrc import NetrcParseError, netrc
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from atari_dqn.errors import UserError
from atari_dqn.telemetry.events import Notice
from atari_dqn.telemetry.sinks.sent_rows import SentRows
from atari_dqn.telemetry.sinks.service_sink import ServiceSink
from atari_dqn.telemetry.sinks.target import Target
from atari_dqn.telemetry.sinks.video_frames import NewVideos, UnreadableVideoError

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
    host = urlsplit(os.environ.get("WANDB_BASE_URL", _SERVER)).hostname or ""
    try:
        file = Path(os.environ.get("NETRC") or Path.home() / ".netrc")
        return netrc(file).authenticators(host) is not None
    except (OSError, RuntimeError, NetrcParseError):  # a `RuntimeError`: there is no home
        return False


class WandbSink(ServiceSink):
    """Sends to a W&B run whose id is recorded in the run directory, with the videos.

    The environment variables of W&B apply: WANDB_PROJECT, WANDB_ENTITY, WANDB_MODE, …
    """

    def __init__(self, target: Target) -> None:
        import wandb

        super().__init__(SentRows(target.directory / STATE))
        self._wandb = wandb
        self._sent.begin(self._sent.run_id or secrets.token_hex(8))
        self._videos = NewVideos(target.directory, frame_skip=int(target.values["env.frame_skip"]))
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

    def _send_scalars(self, scalars: dict[str, float], env_frames: int) -> None:
        """Send numbers by name, at a number of emulator frames."""
        self._log(scalars, env_frames)

    def _send_notice(self, notice: Notice) -> None:
        """Send a notice, the histograms of a new evaluation, and the videos that are ready."""
        games = self._new_games(notice).items()
        histograms = {name: self._wandb.Histogram(values) for name, values in games}
        self._log({f"notice/{notice.kind}": notice.message, **histograms}, notice.env_frames)
        self._videos.send_fresh(self._send_video)

    def _send_video(self, env_frames: int, video: Path) -> None:
        """Send a video; `UnreadableVideoError` if it cannot be read, such as one that is removed."""
        try:
            read = self._wandb.Video(str(video), format="mp4")
        except OSError as error:
            raise UnreadableVideoError(error.strerror or str(error)) from error
        self._log({"video": read}, env_frames)

    def _end(self, *, finished: bool) -> None:
        """Finish uploading; an unfinished run gets exit code 1, which marks it as resumable."""
        self._run.finish(exit_code=0 if finished else 1)

    def _log(self, values: Mapping[str, Any], env_frames: int) -> None:
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
