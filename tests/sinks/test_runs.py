"""Complete runs of the toy game with every sink, and the contents of the sinks afterwards."""

import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from interrupted import complaints, interrupt, resume
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tiny import FEW_STEPS, TINY_CATCH, run

from atari_dqn.telemetry.columns import TABLES, column_names
from atari_dqn.telemetry.events import Notice, Row
from atari_dqn.telemetry.sinks.background_sink import BackgroundSink
from atari_dqn.telemetry.sinks.options import SinkOptions
from atari_dqn.telemetry.sinks.parquet import typed
from atari_dqn.telemetry.sinks.target import Target
from atari_dqn.telemetry.sinks.wandb import WandbSink

ALL = ("tensorboard", "wandb", "parquet")


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was interrupted after 800 of 1,200 frames and resumed, both times with every sink."""
    path = tmp_path_factory.mktemp("sinks") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WANDB_MODE", "offline")
        interrupt(path, *ALL)
        resume(path, *ALL)
    return path


@pytest.fixture(scope="module")
def board(resumed: Path) -> EventAccumulator:
    return EventAccumulator(str(resumed / "tensorboard"), size_guidance={"histograms": 0}).Reload()


def test_no_sink_complains(resumed: Path) -> None:
    assert complaints(resumed) == []


@pytest.mark.fault("D09")
@pytest.mark.parametrize(
    ("tag", "table", "column"),
    [("update/epsilon", "update_log", "epsilon"), ("train/episode_return", "train_log", "episode_return")],
)
def test_tensorboard_has_every_row_once_at_its_frames(
    resumed: Path, board: EventAccumulator, tag: str, table: str, column: str
) -> None:
    rows = pl.read_csv(resumed / f"{table}.csv")
    found = [(event.step, round(event.value, 4)) for event in board.Scalars(tag)]
    assert found == [(frames, round(value, 4)) for frames, value in rows.select("env_frames", column).rows()]


def test_tensorboard_has_histograms_of_the_games_of_an_evaluation(board: EventAccumulator) -> None:
    assert [(event.step, event.histogram_value.num) for event in board.Histograms("eval/returns")] == [
        (300, 2), (600, 3), (900, 2), (1200, 3)
    ]  # fmt: skip


def test_tensorboard_has_the_specs_keys_as_hyperparameters(board: EventAccumulator) -> None:
    content = board.PluginTagToContent("hparams")["_hparams_/session_start_info"]
    assert b"learner.batch_size" in content


def test_parquet_has_the_current_names_of_columns() -> None:
    table = pl.DataFrame({"lane": [3]}).with_columns(
        pl.lit(None).alias(name) for name in column_names("train_log") if name != "environment"
    )
    assert typed(table, "train_log")["environment"].to_list() == [3]


@pytest.mark.fault("D16")
def test_parquet_holds_every_table_as_its_csv_does(resumed: Path) -> None:
    for table in TABLES:
        text, columns = (
            pl.read_csv(resumed / f"{table}.csv"),
            pl.read_parquet(resumed / "parquet" / f"{table}.parquet"),
        )
        assert columns.columns == text.columns
        assert len(columns) == len(text)
        assert columns["env_frames"].to_list() == text["env_frames"].to_list()


def test_wandb_resumes_into_the_same_run(resumed: Path) -> None:
    run_id = json.loads((resumed / "wandb.json").read_text())["run_id"]
    assert len(list((resumed / "wandb").glob(f"offline-run-*-{run_id}*"))) == 2


def wandb_records(data: bytes) -> Iterator[bytes]:
    """Yield the records of a W&B file: blocks of 32 kB, as LevelDB's log, after a header of 7 bytes."""
    place, parts = 7, b""
    while place + 7 <= len(data):
        left = 32_768 - place % 32_768
        if left < 7:
            place += left
            continue
        length, kind = struct.unpack_from("<HB", data, place + 4)
        parts += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part of one
            yield parts
            parts = b""


def wandb_history(path: Path) -> list[dict[str, str]]:
    from wandb.proto import wandb_internal_pb2

    rows = []
    for file in sorted(path.glob("wandb/offline-run-*/run-*.wandb")):
        for data in wandb_records(file.read_bytes()):
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            if record.WhichOneof("record_type") == "history":
                items = record.history.item
                rows.append({item.key or "/".join(item.nested_key): item.value_json for item in items})
    return rows


def history_with(path: Path, name: str) -> list[dict[str, str]]:
    """Wait until W&B's own process, which `finish` leaves behind on a busy machine, has written a value."""
    deadline = time.monotonic() + 30.0
    while not any(name in row for row in wandb_history(path)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return wandb_history(path)


@pytest.mark.fault("D16")
def test_wandb_has_every_episode_once_at_its_frames(resumed: Path) -> None:
    episodes = pl.read_csv(resumed / "train_log.csv").select("env_frames", "episode_return").rows()
    sent = [
        (int(row["env_frames"]), float(row["train/episode_return"]))
        for row in wandb_history(resumed)
        if "train/episode_return" in row
    ]
    assert sent == episodes


@pytest.mark.fault("D08")
def test_video_of_a_checkpoint_is_uploaded_to_wandb_at_its_frames(
    target: Callable[[], Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    path = target().directory
    sink = WandbSink(target())
    (path / "videos").mkdir()
    (path / "videos" / "step_000000100.mp4").write_bytes(b"a video")
    sink.handle(Notice(kind="video", step=110, env_frames=440, message="rendered videos/step_000000100.mp4"))
    sink.close()
    (sent,) = [row for row in history_with(path, "video/path") if "video/path" in row]
    (uploaded,) = path.glob(f"wandb/offline-run-*/files/{json.loads(sent['video/path'])}")
    assert (int(sent["env_frames"]), uploaded.read_bytes()) == (400, b"a video")


def test_a_video_that_cannot_be_read_is_left_out_of_wandb_and_reported(
    target: Callable[[], Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    path = target().directory
    wandb_sink = WandbSink(target())
    sink = BackgroundSink("wandb", lambda: wandb_sink)
    (path / "videos" / "step_000000100.mp4").mkdir(parents=True)
    (path / "videos" / "step_000000200.mp4").write_bytes(b"a video")
    sink.handle(Notice(kind="video", step=210, env_frames=840, message="rendered two"))
    sink.handle(Row(table="train_log", values={"step": 220, "env_frames": 880, "episode_return": 3.0}))
    sink.close()
    rows = history_with(path, "train/episode_return")
    assert [int(row["env_frames"]) for row in rows if {"video/path", "train/episode_return"} & {*row}] == [
        800, 880
    ]  # fmt: skip
    assert [*iter(sink.next_problem, None)] == [
        "the sink wandb left out videos/step_000000100.mp4: Is a directory"
    ]


def exit_codes(path: Path) -> list[int]:
    """Wait for the exit code of each process that logged to a run of W&B, and return them in order."""
    from wandb.proto import wandb_internal_pb2

    def found(file: Path) -> list[int]:
        records = map(wandb_internal_pb2.Record.FromString, wandb_records(file.read_bytes()))
        return [record.exit.exit_code for record in records if record.WhichOneof("record_type") == "exit"]

    files = sorted(path.glob("wandb/offline-run-*/run-*.wandb"))
    deadline = time.monotonic() + 30.0
    while not all(map(found, files)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return [code for file in files for code in found(file)]


def test_a_wandb_run_is_finished_with_exit_code_1_where_the_training_did_not_finish(resumed: Path) -> None:
    assert exit_codes(resumed) == [1, 0]


def test_sinks_change_no_digest_and_no_table(resumed: Path, tiny_run: Callable[..., Path]) -> None:
    plain = tiny_run()
    digests = [json.loads((path / "summary.json").read_text())["state_digest"] for path in (resumed, plain)]
    assert digests[0] == digests[1]
    for table in set(TABLES) - {"throughput_log"}:
        assert (resumed / f"{table}.csv").read_bytes() == (plain / f"{table}.csv").read_bytes()


@pytest.mark.slow
def test_a_wandb_whose_network_is_gone_is_reported_and_the_program_ends(tmp_path: Path) -> None:
    environment = os.environ | {
        "WANDB_MODE": "online",
        "WANDB_API_KEY": "0" * 40,
        "WANDB_BASE_URL": "http://127.0.0.1:9",
        "WANDB_INIT_TIMEOUT": "10",
    }
    code = "from atari_dqn.cli import main; main()"
    command = [sys.executable, "-c", code, "train", str(TINY_CATCH), "--run-dir", str(tmp_path / "run")]
    done = subprocess.run(
        [*command, "--sink", "wandb"], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert "1,200 frames" in done.stdout
    assert "the sink wandb" in complaints(tmp_path / "run")[0]


def test_a_command_that_fails_is_reported_and_the_run_ends(tmp_path: Path) -> None:
    run(tmp_path / "run", *FEW_STEPS, sink_options=SinkOptions(notify="exit 3"))
    assert "the sink notify failed (CalledProcessError" in complaints(tmp_path / "run")[0]


def test_the_commands_facts_are_the_runs(tmp_path: Path) -> None:
    run(
        tmp_path / "run",
        *FEW_STEPS,
        sink_options=SinkOptions(
            notify=f'echo "$DQN_EVENT $DQN_ENV_FRAMES $DQN_RUN_DIR" > "{tmp_path}/sent"'
        ),
    )
    assert (tmp_path / "sent").read_text() == f"finished 80 {tmp_path}/run\n"
