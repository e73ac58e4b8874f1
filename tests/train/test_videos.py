"""Each full evaluation leaves a video, which does not change the learning."""

import errno
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import av
import pytest
from tiny import CPU, run

from atari_dqn.errors import DiskFullError
from atari_dqn.evaluation.frozen_agent import load_frozen
from atari_dqn.record.recording import load_recording
from atari_dqn.run.directory import RunDirectory
from atari_dqn.telemetry.events import Event, Notice, Sink
from atari_dqn.train import evaluation_videos as videos
from atari_dqn.train import launch

TWO_EVALUATIONS = (
    "training.total_frames=640", "evaluation.full_period_frames=400", "evaluation.light_period_frames=9999",
)  # fmt: skip
ON = "system.evaluation_video=true"


def notices(path: Path, kind: str) -> list[str]:
    lines = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    return [line["message"] for line in lines if line["kind"] == kind]


AT_ONCE = """
import os, sys
from pathlib import Path
from atari_dqn.record import __main__ as renderer
os.nice = lambda priority: None
sys.exit(renderer.main(Path(sys.argv[1]), None))
"""
"""Renders a recording at the priority of the test; at the lowest, it takes minutes next to other tests."""


@pytest.fixture(scope="module")
def filmed(tiny_run: Callable[..., Path]) -> Path:
    """A run with two videos."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(videos, "FINAL_WAIT_SECONDS", 600.0)
        patch.setattr(videos, "_command", lambda path: [sys.executable, "-c", AT_ONCE, str(path)])
        return tiny_run(*TWO_EVALUATIONS, ON)


@pytest.mark.slow
def test_each_full_evaluation_leaves_a_video_of_its_median_game(filmed: Path) -> None:
    steps = [int(name.stem.removeprefix("step_")) for name in sorted((filmed / "videos").glob("*.mp4"))]
    assert steps == [100, 160]
    for step in steps:
        recording = load_recording(filmed / f"videos/step_{step:09d}.json")
        assert recording.choice == "the median of 3 games"
        with av.open(str(filmed / f"videos/step_{step:09d}.mp4")) as container:
            assert container.streams.video[0].frames > recording.games[0].result.length_frames
    rendered = [message for message in notices(filmed, "video") if message.startswith("rendered")]
    assert len(rendered) == 2


@pytest.mark.slow
def test_videos_change_nothing_that_is_learned_or_logged(filmed: Path, tiny_run: Callable[..., Path]) -> None:
    plain = tiny_run(*TWO_EVALUATIONS, "system.evaluation_video=false")
    digests = [json.loads((path / "summary.json").read_text())["state_digest"] for path in (filmed, plain)]
    assert digests[0] == digests[1]
    assert (filmed / "eval_log.csv").read_bytes() == (plain / "eval_log.csv").read_bytes()
    assert not (plain / "videos").exists()


def test_without_the_extra_recordings_are_kept_and_the_remedy_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(videos, "_NEEDED", ("a_package_of_no_one",))
    run(tmp_path / "run", *TWO_EVALUATIONS, ON)
    assert [path.suffix for path in (tmp_path / "run/videos").iterdir()] == [".json"] * 2
    assert "pip install 'atari-dqn[record]'" in notices(tmp_path / "run", "video")[0]


def test_recording_of_a_run_has_the_digest_of_its_weights_and_the_protocol_of_its_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(videos, "_NEEDED", ("a_package_of_no_one",))
    run(tmp_path / "run", *TWO_EVALUATIONS, ON)
    source = load_recording(tmp_path / "run/videos/step_000000160.json").source
    last_row = (tmp_path / "run/eval_log.csv").read_text().splitlines()[-1]
    assert source.weights_sha256 == load_frozen(tmp_path / "run", CPU).weights_sha256
    assert last_row.endswith(source.protocol_digest)


@pytest.mark.parametrize("weights", ["the same", "others"])
def test_recording_at_a_step_of_a_resumed_run_leaves_that_of_other_weights(
    weights: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(videos, "_NEEDED", ("a_package_of_no_one",))
    run(tmp_path / "run", *TWO_EVALUATIONS, ON)
    folder = tmp_path / "run/videos"
    first = folder / "step_000000160.json"
    recorded = first.read_bytes()
    first.with_suffix(".mp4").write_bytes(b"frames")
    if weights == "others":
        first.write_bytes(b"a recording of other weights")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    launch.resume(
        RunDirectory.open(tmp_path / "run"), device=CPU, views=[], total_frames=None,
        checkpoint="step_000000100", discard_later=True,
    )  # fmt: skip
    later = {} if weights == "the same" else {folder / "step_000000160_2.json": recorded}
    assert {path: path.read_bytes() for path in folder.iterdir()} == before | later


@pytest.mark.parametrize(
    ("name", "is_of_run"),
    [("step_000000160", True), ("step_000000160_2", True), ("step_000000160_run", False), ("step_1", False)],
)
def test_recordings_of_the_run_itself_are_rendered(name: str, is_of_run: bool) -> None:
    assert videos._is_of_run(Path(f"{name}.json")) is is_of_run


def kinds(path: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in (path / "events.jsonl").read_text().splitlines()]


def child_does(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(videos, "_command", lambda recording: [sys.executable, "-c", program])


@pytest.mark.slow
def test_run_is_finished_without_a_video_that_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child_does(monkeypatch, "import time; time.sleep(600)")
    monkeypatch.setattr(videos, "FINAL_WAIT_SECONDS", 0.1)
    path = tmp_path / "run"
    run(path, *TWO_EVALUATIONS, ON)
    assert (path / "summary.json").exists()
    assert kinds(path)[-4:] == ["finished", "video", "video", "video"]
    assert notices(path, "video")[-1] == (
        f"not rendered in time: videos/step_000000160.mp4; "
        f"`dqn record --replay {path}/videos/step_000000160.json` renders it"
    )


@pytest.mark.slow
def test_process_that_prints_much_is_not_blocked_by_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child_does(monkeypatch, "import sys; sys.exit('x' * 1_000_000)")
    run(tmp_path / "run", *TWO_EVALUATIONS, ON)
    failed = [message for message in notices(tmp_path / "run", "video") if "could not render" in message]
    assert len(failed) == 2
    assert "xxx; `dqn record --replay" in failed[0]


KILLED = """
import os, signal, subprocess, sys
from atari_dqn.envs.processes import parent_to_end_with
child = "from atari_dqn.envs.processes import end_with_parent; import sys, time\\n" \
        "end_with_parent(int(sys.argv[1])); print('ready', flush=True); time.sleep(600)"
process = subprocess.Popen([sys.executable, "-c", child, str(parent_to_end_with())], stdout=subprocess.PIPE)
process.stdout.readline()
os.kill(process.pid, signal.SIGSTOP)
print(process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has ended")
def test_process_ends_with_its_killed_parent_even_if_it_is_stopped() -> None:
    found = subprocess.run([sys.executable, "-c", KILLED], stdout=subprocess.PIPE, text=True, check=False)
    assert found.returncode == -signal.SIGKILL
    stat = Path(f"/proc/{found.stdout.strip()}/stat")
    deadline = time.monotonic() + 30
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline, "the child lives on"
        time.sleep(0.02)


def test_run_goes_on_without_its_videos_if_they_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_process(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", no_process)
    run(tmp_path / "run", *TWO_EVALUATIONS, ON)
    (first, *_) = [text for text in notices(tmp_path / "run", "video") if "could not render" in text]
    assert "Resource temporarily unavailable" in first


def test_run_goes_on_without_a_recording_that_a_full_disk_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: object) -> None:
        raise DiskFullError("cannot write the recording: no space left on device")

    monkeypatch.setattr(videos, "save_numbered", no_space)
    run(tmp_path / "run", *TWO_EVALUATIONS, ON)
    assert "no space left on device" in notices(tmp_path / "run", "video")[0]


class SignalledError(Exception):
    """SIGTERM had its effect on the process."""


class Signals:
    """A view that sends SIGTERM to the process at a notice, or when it is closed."""

    def __init__(self, at: str) -> None:
        self.at = at

    def handle(self, event: Event) -> None:
        if isinstance(event, Notice) and event.message.startswith(self.at):
            signal.raise_signal(signal.SIGTERM)

    def close(self) -> None:
        if self.at == "the end":
            signal.raise_signal(signal.SIGTERM)


@pytest.fixture
def terminated() -> Iterator[None]:
    """SIGTERM raises an error instead of ending this process."""

    def fail(*_: object) -> None:
        raise SignalledError

    before = signal.signal(signal.SIGTERM, fail)
    yield
    signal.signal(signal.SIGTERM, before)


def resume(path: Path, *views: Sink, checkpoint: str | None = None) -> None:
    launch.resume(
        RunDirectory.open(path), device=CPU, views=views, total_frames=None,
        checkpoint=checkpoint, discard_later=True,
    )  # fmt: skip


def train(path: Path, *views: Sink) -> None:
    run(path, *TWO_EVALUATIONS, ON, views=views)


def train_and_go_back(path: Path, *views: Sink) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(videos, "_NEEDED", ("a_package_of_no_one",))
        train(path)
    resume(path, *views, checkpoint="step_000000100")


@pytest.mark.usefixtures("terminated")
@pytest.mark.parametrize("go", [train, train_and_go_back])
@pytest.mark.parametrize("at", ["waiting up to 60 seconds", "finished at", "the end"])
def test_finished_run_that_is_signalled_is_complete_without_its_videos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, go: Callable[..., None], at: str
) -> None:
    child_does(monkeypatch, "import time; time.sleep(600)")
    if at == "the end":
        monkeypatch.setattr(videos, "FINAL_WAIT_SECONDS", 0.1)
    path = tmp_path / "run"
    go(path, Signals(at))
    assert (path / "summary.json").exists()
    assert [text.split(";")[0] for text in notices(path, "video")[-2:]] == [
        "not rendered in time: videos/step_000000100.mp4",
        "not rendered in time: videos/step_000000160.mp4",
    ]


def test_resume_of_a_run_that_was_killed_before_its_summary_renders_its_videos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(videos, "_NEEDED", ("a_package_of_no_one",))
        train(path)
    (path / "summary.json").unlink()
    child_does(monkeypatch, "import sys; sys.exit('no video here')")
    resume(path)
    failed = [text.split(";")[0] for text in notices(path, "video") if "could not render" in text]
    assert failed == [f"could not render videos/step_000000{step}.mp4: no video here" for step in (100, 160)]
