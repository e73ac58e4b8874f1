import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from atari_dqn.telemetry.events import Event, GateChanged, Notice
from atari_dqn.telemetry.sinks import notify
from atari_dqn.telemetry.sinks.notify import NotifySink


def notice(kind: str) -> Notice:
    return Notice(kind=kind, step=300, env_frames=1200, message="a 'quoted' $HOME é")


def warned(state: str) -> GateChanged:
    return GateChanged(
        gate="q_bound", state=state, step=1, env_frames=4, message="Q is 200", value=200.0, threshold=100.0
    )  # type: ignore[arg-type]


def sent(target, tmp_path: Path, event: Event) -> str:
    log = tmp_path / "log"
    log.touch()
    NotifySink(
        f'echo "$DQN_EVENT|$DQN_MESSAGE|$DQN_RUN_NAME|$DQN_GAME|$DQN_ENV_FRAMES" >> "{log}"', target()
    ).handle(event)
    return log.read_text()


@pytest.mark.parametrize(
    ("kind", "event"),
    [
        ("finished", "finished"),
        ("halted", "halted"),
        ("worker died", "halted"),
        ("interrupted", "interrupted"),
        ("failed", "failed"),
    ],
)
def test_an_ending_is_sent_with_its_facts_as_they_are(target, tmp_path: Path, kind: str, event: str) -> None:
    assert sent(target, tmp_path, notice(kind)) == f"{event}|a 'quoted' $HOME é|my run é|catch|1200\n"


def test_a_gate_that_warns_is_sent(target, tmp_path: Path) -> None:
    assert sent(target, tmp_path, warned("warned")) == "warning|q_bound: Q is 200|my run é|catch|4\n"


@pytest.mark.parametrize("event", [notice("checkpoint"), notice("sink"), warned("ok"), warned("watching")])
def test_nothing_else_is_sent(target, tmp_path: Path, event: Event) -> None:
    assert sent(target, tmp_path, event) == ""


def test_command_gets_the_whole_path_of_the_run(
    target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    relative = replace(target(), directory=Path("my run é"))
    monkeypatch.chdir(tmp_path)
    NotifySink(f'echo "$DQN_RUN_DIR" > "{tmp_path}/log"', relative).handle(notice("finished"))
    assert (tmp_path / "log").read_text() == f"{tmp_path.resolve()}/my run é\n"


def runs(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_command_that_takes_too_long_is_killed_with_what_it_started(
    target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "COMMAND_SECONDS", 2.0)
    sink = NotifySink(f"sleep 600 & echo $! > {tmp_path}/pid; wait", target())
    with pytest.raises(subprocess.TimeoutExpired):
        sink.handle(notice("finished"))
    pid = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 10
    while runs(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    if runs(pid):
        os.kill(pid, 9)
        pytest.fail("what the command started lives on")


def test_command_that_fails_is_an_error(target) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        NotifySink("exit 3", target()).handle(notice("finished"))
