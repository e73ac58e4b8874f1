"""Log metrics over emulator frames to MLflow; resumes continue the same MLflow run."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import Any

from atari_dqn.telemetry.events import Notice
from atari_dqn.telemetry.sinks.sent_rows import SentRows
from atari_dqn.telemetry.sinks.service_sink import ServiceSink
from atari_dqn.telemetry.sinks.target import Target

DATABASE = "mlflow.db"
STATE = "mlflow.json"
_EXPERIMENT = "atari_dqn"
_MOST_PARAMS = 100
"""What MLflow takes in one request."""


class MlflowSink(ServiceSink):
    """Sends to an MLflow run whose id is recorded in the run directory.

    MLFLOW_TRACKING_URI names a server; without it, the file `mlflow.db` in the run directory is the store.
    MLFLOW_EXPERIMENT_NAME applies too. Videos are not uploaded.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(SentRows(target.directory / STATE))
        self._client = _client(target.directory)
        if self._sent.run_id is None:
            self._sent.begin(self._create_run(target))
        self._run_id = self._sent.run_id
        self._client.update_run(self._run_id, status="RUNNING")

    def _send_scalars(self, scalars: dict[str, float], env_frames: int) -> None:
        """Send numbers by name, at a number of emulator frames."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        metrics = [Metric(name, value, now, env_frames) for name, value in scalars.items()]
        self._client.log_batch(self._run_id, metrics=metrics)

    def _send_notice(self, notice: Notice) -> None:
        """Set the tag of the notice's kind, which then has the newest."""
        self._client.set_tag(self._run_id, f"notice.{notice.kind}", notice.message)

    def _end(self, *, finished: bool) -> None:
        """Set the status FINISHED, or KILLED for a run that may be resumed."""
        self._client.set_terminated(self._run_id, "FINISHED" if finished else "KILLED")

    def _create_run(self, target: Target) -> str:
        """Create an MLflow run with the complete spec as its parameters; return its id."""
        from mlflow.entities import Param

        tags = {"track": target.track_label, "game": str(target.values["game"])}
        created = self._client.create_run(_experiment_id(self._client), run_name=target.name, tags=tags)
        run_id: str = created.info.run_id
        params = [Param(key, str(value)) for key, value in target.values.items()]
        for start in range(0, len(params), _MOST_PARAMS):
            self._client.log_batch(run_id, params=params[start : start + _MOST_PARAMS])
        return run_id


def _client(directory: Path) -> Any:
    """Return a client that prints nothing, and sends nothing but what is logged."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read while mlflow is imported
    from mlflow.tracking import MlflowClient

    logging.getLogger("mlflow").setLevel(logging.ERROR)
    store = os.environ.get("MLFLOW_TRACKING_URI", f"sqlite:///{directory.resolve() / DATABASE}")
    return MlflowClient(tracking_uri=store)


def _experiment_id(client: Any) -> str:
    """Return the id of the experiment, which another run of a sweep may create at the same moment."""
    from mlflow.exceptions import MlflowException

    name = os.environ.get("MLFLOW_EXPERIMENT_NAME", _EXPERIMENT)
    found = client.get_experiment_by_name(name)
    if found is None:
        try:
            return str(client.create_experiment(name))
        except MlflowException:
            found = client.get_experiment_by_name(name)
            if found is None:
                raise
    return str(found.experiment_id)
