"""`dqn verify` reads the scores and recordings of a run, and compares its links with its catalog."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny import CPU, run

import atari_dqn as dqn
from atari_dqn.errors import DamagedError, InterruptedRunError
from atari_dqn.run.directory import RunDirectory
from atari_dqn.telemetry.events import Event, Row
from atari_dqn.train import launch
from atari_dqn.verify.proof import check_only


@pytest.fixture
def mine(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run", symlinks=True))


def score(path: Path) -> Path:
    (found,) = (path / "evaluations").iterdir()
    return found


def test_scores_and_recordings_are_among_the_checked_files(mine: Path) -> None:
    with_both = check_only(mine)
    removed = [score(mine), mine / "videos/step_000000200_run.json"]
    size = sum(path.stat().st_size for path in removed)
    for path in removed:
        path.unlink()
    without = check_only(mine)
    assert (with_both.files - without.files, with_both.bytes - without.bytes) == (2, size)


def test_score_with_another_mean_is_damaged(mine: Path) -> None:
    document = json.loads(score(mine).read_text())
    score(mine).write_text(json.dumps({**document, "mean_return": 99.0}))
    for read in (check_only, lambda path: dqn.Run(path).scores):
        with pytest.raises(DamagedError, match=rf"{score(mine).name}: is not what was written"):
            read(mine)


def test_truncated_score_is_damaged(mine: Path) -> None:
    score(mine).write_bytes(score(mine).read_bytes()[:300])
    with pytest.raises(DamagedError, match=rf"{score(mine).name}: is not JSON"):
        check_only(mine)


def test_score_of_an_earlier_version_without_a_digest_is_accepted(mine: Path) -> None:
    document = json.loads(score(mine).read_text())
    del document["score_sha256"], document["weights_sha256"]
    score(mine).write_text(json.dumps(document))
    assert check_only(mine).checkpoints == ("step_000000150", "step_000000200")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text[:300], "is not a recording: it is not JSON"),
        (lambda text: text.replace('"seed": 1', '"seed": 2'), "is not what was written"),
        (lambda text: "{}", "is not a recording"),
    ],
    ids=["truncated", "edited", "another file"],
)
def test_recording_that_is_not_what_was_written_is_damaged(
    mine: Path, change: Callable[[str], str], words: str
) -> None:
    path = mine / "videos/step_000000200_run.json"
    path.write_text(change(path.read_text()))
    with pytest.raises(DamagedError, match=rf"step_000000200_run\.json:? {words}"):
        check_only(mine)


@pytest.mark.parametrize("text", ["{", "{}", '{"score": "9"}'], ids=["truncated", "empty", "edited"])
def test_damaged_summary_is_named_with_a_remedy_that_works(mine: Path, text: str) -> None:
    path = mine / "summary.json"
    whole = path.read_bytes()
    path.write_text(text)
    with pytest.raises(DamagedError) as found:
        check_only(mine)
    assert str(found.value).splitlines()[1:] == [f"remove it, and `dqn resume {mine}` writes it again"]
    path.unlink()
    launch.resume(RunDirectory.open(mine), device=CPU, views=[], total_frames=None)
    kept = {"score", "best", "state_digest", "updates"}
    assert json.loads(path.read_text()).items() >= {key: json.loads(whole)[key] for key in kept}.items()
    check_only(mine)


def with_link(path: Path, name: str, target: str) -> Path:
    link = path / "checkpoints" / name
    link.unlink()
    link.symlink_to(target)
    return link


@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [
        ("latest", "step_000000150", "step_000000200"),
        ("best", "step_000000200", "step_000000150"),
    ],
)
def test_link_to_another_checkpoint_than_the_catalogs_is_named_with_its_remedy(
    mine: Path, name: str, wrong: str, right: str
) -> None:
    link = with_link(mine, name, wrong)
    with pytest.raises(DamagedError) as found:
        check_only(mine)
    expected = f"{link}: points to {wrong}, but by catalog.json it is {right}; mend it with `ln -sfn {right} "
    assert expected in str(found.value)


class InterruptsAtStep200:
    """Interrupts a run at the end of step 200, as Ctrl-C does."""

    def handle(self, event: Event) -> None:
        if isinstance(event, Row) and event.table == "update_log" and event.values["step"] == 200:
            os.kill(os.getpid(), signal.SIGINT)

    def close(self) -> None:
        pass


def test_link_that_a_kill_left_behind_is_accepted_in_a_run_that_is_not_finished(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(InterruptedRunError):
        run(path, "checkpoint.keep_last=2", views=[InterruptsAtStep200()])
    with_link(path, "latest", "step_000000150")
    assert check_only(path).checkpoints == ("step_000000150", "step_000000200")


def test_best_agent_is_that_of_the_catalog_where_the_link_is_wrong(mine: Path) -> None:
    with_link(mine, "best", "step_000000200")
    found = dqn.Run(mine).agent("best").frozen
    assert (found.step, found.choice) == (150, "best")
