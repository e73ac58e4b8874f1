"""A resume may change the number of torch's threads, which later resumes, evaluations and verify use."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from tiny import CPU

from atari_dqn.errors import UserError
from atari_dqn.evaluation.frozen_agent import load_frozen
from atari_dqn.run.checkpoint.manifest import read_manifest, replace_bookkeeping
from atari_dqn.run.checkpoint.reconcile import checkpoint_directories
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.threads import check_threads, steps_with_the_same_threads, threads_at
from atari_dqn.train import launch
from atari_dqn.train.session import Session
from atari_dqn.verify import proof
from atari_dqn.verify.repetition import repeat_from

SHORT = ("training.total_frames=800", "checkpoint.keep_last=3")


@pytest.fixture(autouse=True)
def threads_put_back() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def whole(tiny_run: Callable[..., Path]) -> Path:
    """A complete run of one thread with the checkpoints of steps 150 and 200."""
    return tiny_run(*SHORT)


def resume(path: Path, **options: object) -> None:
    launch.resume(RunDirectory.open(path), device=CPU, views=[], **{"total_frames": None, **options})


def events(path: Path, kind: str) -> list[dict]:
    reported = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    return [event for event in reported if event["kind"] == kind]


def test_run_goes_on_with_the_threads_it_began_with(copied: Path) -> None:
    torch.set_num_threads(2)
    resume(copied, total_frames=1_000)
    assert torch.get_num_threads() == 1


def test_resume_with_other_threads_computes_with_them_and_is_marked_inexact(copied: Path) -> None:
    resume(copied, total_frames=1_000, threads=2)
    assert torch.get_num_threads() == 2
    assert events(copied, "resumed")[-1]["data"]["torch_threads"] == 2
    assert events(copied, "inexact")[-1]["message"] == (
        "the run may differ from an uninterrupted one: "
        "2 of torch's threads, 1 until here: sums round differently"
    )


@pytest.mark.slow
def test_resume_with_the_same_threads_is_not_marked(copied: Path) -> None:
    before = len(events(copied, "inexact"))
    resume(copied, total_frames=1_000, threads=1)
    assert len(events(copied, "inexact")) == before


@pytest.mark.slow
def test_later_resumes_keep_the_threads_of_an_earlier_one_and_are_not_marked_for_it(copied: Path) -> None:
    resume(copied, total_frames=1_000, threads=2)
    before = len(events(copied, "inexact"))
    torch.set_num_threads(1)
    resume(copied, total_frames=1_200)
    assert torch.get_num_threads() == 2
    assert len(events(copied, "inexact")) == before


def test_change_is_kept_by_a_run_that_dies_before_it_saves_anything(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(session: object, guard: object) -> None:
        raise SystemError

    with monkeypatch.context() as patch:
        patch.setattr(launch.Session, "run", die)
        with pytest.raises(SystemError):
            resume(copied, total_frames=1_000, threads=2)
    torch.set_num_threads(1)
    resume(copied)
    assert torch.get_num_threads() == 2


def resume_without_event_log(path: Path) -> list[str]:
    """Extend a run of one thread with two, lose the event log, go on, and return why it may be inexact."""
    resume(path, total_frames=1_000, threads=2)
    (path / "events.jsonl").unlink()
    torch.set_num_threads(1)
    resume(path, total_frames=1_200, set_aside_logs=True)
    return [event["message"] for event in events(path, "inexact") if "threads" in event["message"]]


def test_run_without_its_event_log_goes_on_with_the_threads_of_its_checkpoint(copied: Path) -> None:
    assert resume_without_event_log(copied) == []
    assert torch.get_num_threads() == 2


def test_run_whose_threads_are_recorded_nowhere_is_marked_inexact(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state_dict = Session.state_dict

    def of_an_earlier_version(session: Session) -> dict[str, object]:
        return {key: value for key, value in state_dict(session).items() if key != "torch_threads"}

    monkeypatch.setattr(Session, "state_dict", of_an_earlier_version)
    for checkpoint in checkpoint_directories(copied / "checkpoints"):
        bookkeeping = read_manifest(checkpoint)["bookkeeping"]
        del bookkeeping["torch_threads"]
        replace_bookkeeping(checkpoint, bookkeeping)
    assert resume_without_event_log(copied) == [
        "the run may differ from an uninterrupted one: "
        "1 of torch's threads; events.jsonl, which was damaged, may have recorded another number"
    ]


def log(path: Path, *resumes: tuple[int, int]) -> RunDirectory:
    """Return a run that started with two threads and was resumed at these steps with these numbers."""
    path.mkdir()
    record = {"torch_threads": 2, "spec": {"digest": "", "toml_sha256": ""}}
    (path / "provenance.json").write_text(json.dumps(record))
    lines = [
        json.dumps({"kind": "resumed", "step": step, "data": {"torch_threads": threads}})
        for step, threads in resumes
    ]
    (path / "events.jsonl").write_text("\n".join(lines))
    return RunDirectory(path)


@pytest.mark.parametrize(
    ("resumes", "at_0", "at_100", "at_200"),
    [
        ((), 2, 2, 2),
        (((100, 1),), 2, 1, 1),
        (((100, 1), (200, 1)), 2, 1, 1),
        (((100, 1), (200, 4)), 2, 1, 4),
        (((100, 1), (50, 2)), 2, 2, 2),  # back to step 50, where there were two
        (((200, 4), (100, 1)), 2, 1, 1),
        (((0, 1),), 1, 1, 1),  # begun anew
    ],
)
def test_threads_at_a_step_are_those_of_the_last_resume_before_it(
    resumes: tuple[tuple[int, int], ...], at_0: int, at_100: int, at_200: int, tmp_path: Path
) -> None:
    found = log(tmp_path / "run", *resumes)
    assert [threads_at(found, step) for step in (0, 100, 200)] == [at_0, at_100, at_200]


def test_threads_of_a_checkpoint_count_until_the_first_resume_in_the_log(tmp_path: Path) -> None:
    found = log(tmp_path / "run", (100, 1))  # begun anew at this step
    assert [threads_at(found, step, saved=4) for step in (50, 100)] == [4, 1]
    assert steps_with_the_same_threads(found, 50, saved=1) == float("inf")


def test_step_until_which_threads_stay_is_where_their_number_changes(tmp_path: Path) -> None:
    found = log(tmp_path / "run", (100, 2), (200, 1), (300, 1))
    assert [steps_with_the_same_threads(found, step) for step in (0, 100, 200)] == [200, 200, float("inf")]


def test_threads_of_a_resume_that_made_no_step_are_none_of_the_run(tmp_path: Path) -> None:
    found = log(tmp_path / "run", (100, 1), (100, 2))
    assert steps_with_the_same_threads(found, 0) == float("inf")


@pytest.mark.parametrize(
    "line",
    [
        '{"kind": "resumed", "step": 100, "data": {}}',
        '{"kind": "resumed", "step": 100}',
        '{"kind": "resumed", "step": 100, "data": {"torch_threads": 0}}',
        '{"kind": "resumed", "step": -1, "data": {"torch_threads": 1}}',
        '{"kind": "resumed", "step": 1e999, "data": {"torch_threads": 1}}',
        '{"kind": "resumed", "step": 100, "data": {"torch_threads": 1000000000000}}',
        '{"kind": "resumed", "step": 100, "data": {"torch_thr',
        '["resumed"]',
        '"resumed"',
    ],
    ids=[
        "of an earlier version",
        "no data",
        "zero",
        "negative step",
        "infinity",
        "too many",
        "torn",
        "a list",
        "a string",
    ],
)
def test_lines_that_tell_of_no_threads_change_none(line: str, tmp_path: Path) -> None:
    found = log(tmp_path / "run")
    found.events.write_text(line)
    assert threads_at(found, 100) == 2


def test_a_checkpoint_is_evaluated_with_the_threads_it_was_saved_with(copied: Path) -> None:
    resume(copied, total_frames=1_000, threads=2)
    load_frozen(copied / "checkpoints" / "step_000000250", CPU)
    assert torch.get_num_threads() == 2
    load_frozen(copied / "checkpoints" / "step_000000200", CPU)  # from which it continued with two
    assert torch.get_num_threads() == 1


@pytest.mark.slow
def test_verify_plays_on_no_further_than_the_threads_stayed(
    copied: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resume(copied, total_frames=1_000, threads=2)

    def play_here(*arguments):
        return repeat_from(*arguments[:-1])  # without the progress callback

    monkeypatch.setattr(proof, "repeat_in_fresh_process", play_here)
    found = proof.verify_run(
        copied,
        checkpoint="step_000000150",
        frames=400,
        device=CPU,
        on_progress=lambda activity, done, total: None,
    )
    assert (found.to_frames, found.differences) == (800, ())


def test_more_threads_than_cores_are_refused() -> None:
    check_threads("--threads", 2, 2)
    with pytest.raises(UserError, match="--threads: found 3, expected at most 2"):
        check_threads("--threads", 3, 2)
