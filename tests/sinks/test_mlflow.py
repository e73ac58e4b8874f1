"""What MLflow, read through its own client, has of a run that was interrupted and resumed."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from interrupted import complaints, interrupt, resume

from atari_dqn.spec.keys import flatten
from atari_dqn.spec.loader import load_spec
from atari_dqn.telemetry.sinks.mlflow import DATABASE, STATE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # MLflow's, of SQLAlchemy
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # MLflow leaves its connections to the process
]


def client(path: Path) -> Any:
    from mlflow.tracking import MlflowClient

    return MlflowClient(tracking_uri=f"sqlite:///{path / DATABASE}")


def only_run(path: Path) -> Any:
    found = client(path)
    experiment = found.get_experiment_by_name("atari_dqn")
    (logged,) = found.search_runs([experiment.experiment_id])
    return logged


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The run directory, and what MLflow knew of the run when it had been interrupted."""
    path = tmp_path_factory.mktemp("sinks") / "my run é"
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        patch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
        interrupt(path, "mlflow")
        before = only_run(path)
        resume(path, "mlflow")
    return path, before


def test_mlflow_does_not_complain(resumed: tuple[Path, Any]) -> None:
    assert complaints(resumed[0]) == []


@pytest.mark.parametrize(
    ("name", "table", "column"),
    [("update/epsilon", "update_log", "epsilon"), ("train/episode_return", "train_log", "episode_return")],
)
def test_mlflow_has_every_row_once_at_its_frames(
    resumed: tuple[Path, Any], name: str, table: str, column: str
) -> None:
    path, before = resumed
    history = client(path).get_metric_history(before.info.run_id, name)
    rows = pl.read_csv(path / f"{table}.csv").select("env_frames", column).rows()
    assert sorted((metric.step, metric.value) for metric in history) == sorted(rows)


def test_parameters_of_mlflow_are_the_keys_of_the_spec(resumed: tuple[Path, Any]) -> None:
    values = flatten(load_spec(resumed[0] / "spec.toml").spec)
    assert only_run(resumed[0]).data.params == {key: str(value) for key, value in values.items()}


def test_a_resume_continues_the_mlflow_run_that_was_stopped(resumed: tuple[Path, Any]) -> None:
    path, before = resumed
    after = only_run(path)
    assert after.info.run_id == before.info.run_id == json.loads((path / STATE).read_text())["run_id"]
    assert (before.info.status, after.info.status) == ("KILLED", "FINISHED")


def test_mlflow_shows_the_run_by_its_name_and_newest_notices(resumed: tuple[Path, Any]) -> None:
    logged = only_run(resumed[0])
    lines = [json.loads(line) for line in (resumed[0] / "events.jsonl").read_text().splitlines()]
    newest = {line["kind"]: line["message"] for line in lines}
    assert logged.info.run_name == "my run é"
    assert {tag: logged.data.tags[tag] for tag in ("game", "track")} == {"game": "catch", "track": "A*"}
    assert logged.data.tags["notice.finished"] == newest["finished"]
    assert logged.data.tags["notice.resumed"] == newest["resumed"]


def test_mlflow_s_own_telemetry_is_off(resumed: tuple[Path, Any]) -> None:
    from mlflow.environment_variables import MLFLOW_DISABLE_TELEMETRY

    assert MLFLOW_DISABLE_TELEMETRY.get() is True
