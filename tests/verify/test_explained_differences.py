"""A difference that the run or the machine explains is a caveat of `dqn verify`, not a fault."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from tiny import CPU, FEW_STEPS, run

from atari_dqn.actors.inline import InlineActors
from atari_dqn.cli.verify import text
from atari_dqn.run.directory import RunDirectory
from atari_dqn.train import resume_exactness
from atari_dqn.train.resumption import reopened
from atari_dqn.verify import proof, repetition
from atari_dqn.verify.proof import Verification, verify_run
from atari_dqn.verify.records import InexactResume, Records, records_of
from atari_dqn.verify.repetition import OnProgress, Repetition, repeat_from

FREE = (
    "env.num_envs=4", "actors.processes=2", "actors.fragment_steps=5", "actors.mode=free_running",
    "actors.error_buffer_steps=60", "evaluation.light_period_frames=9_999", "training.total_frames=400",
)  # fmt: skip
GPU = torch.device("cuda", 0)
OTHER_DEVICE = "device cuda:0, it began on cpu"
MAY_DIFFER = "the run may differ from an uninterrupted one: "


def quiet(what: str, done: int, total: int) -> None:
    pass


def repeat_here(
    path: Path, checkpoint: str | None, device_name: str, stops: Sequence[int], on_progress: OnProgress
) -> Repetition:
    """Repeat on the CPU, in this process, because a fresh one imports packages for seconds."""
    return repeat_from(path, checkpoint, "cpu", stops)


@pytest.fixture
def other_weights(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes the weights of some repetition and of all later ones differ: 1 is the first."""

    def since(number: int) -> None:
        count = 0

        def repeat(
            path: Path, name: str | None, device: str, stops: Sequence[int], report: OnProgress
        ) -> Repetition:
            nonlocal count
            count += 1
            found = repeat_here(path, name, device, stops, report)
            if count < number:
                return found
            changed = {step: {**state, "clock.steps": "other"} for step, state in found.states.items()}
            return replace(found, states=changed)

        monkeypatch.setattr(proof, "repeat_in_fresh_process", repeat)

    return since


def verified(path: Path, device: torch.device = CPU, checkpoint: str | None = None) -> Verification:
    return verify_run(path, checkpoint=checkpoint, frames=None, device=device, on_progress=quiet)


@pytest.fixture(scope="module")
def fast_kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose kernels need not be deterministic on a GPU."""
    path = tmp_path_factory.mktemp("fast") / "run"
    run(path, *FEW_STEPS, "learner.deterministic=false")
    return path


@pytest.fixture
def one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resume_exactness, "_other_machine", lambda *_: iter(()))


@pytest.mark.usefixtures("one_gpu")
def test_repetitions_by_fast_kernels_of_a_gpu_may_differ(
    fast_kernels: Path, other_weights: Callable[[int], None]
) -> None:
    other_weights(2)
    found = verified(fast_kernels, GPU)
    assert (found.verdict, found.differences) == ("inexact", ())


@pytest.mark.usefixtures("one_gpu")
def test_reason_and_difference_of_fast_kernels_are_printed(
    fast_kernels: Path, other_weights: Callable[[int], None]
) -> None:
    other_weights(2)
    last = text(verified(fast_kernels, GPU)).partition("does not repeat, as is expected of this run:\n")[2]
    assert "learner.deterministic = false" in last
    assert "the repetitions differ, first: between the repetitions clock.steps" in " ".join(last.split())


def test_repetitions_on_a_cpu_may_not_differ(
    fast_kernels: Path, other_weights: Callable[[int], None]
) -> None:
    other_weights(2)
    assert verified(fast_kernels).verdict == "differs"


def test_caveats_are_printed_after_differences(
    fast_kernels: Path, other_weights: Callable[[int], None]
) -> None:
    other_weights(2)
    found = replace(verified(fast_kernels), caveats=("no update was made",))
    assert text(found).endswith("\ncaveats:\n  - no update was made")


def test_run_of_free_running_actors_is_not_called_different(
    tmp_path: Path, other_weights: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "run", *FREE, make_actors=InlineActors)
    monkeypatch.setattr(repetition, "reopened", partial(reopened, make_actors=InlineActors))
    other_weights(2)
    found = verified(tmp_path / "run")
    assert (found.verdict, found.differences) == ("inexact", ())


@pytest.fixture(scope="module")
def two_checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run with the checkpoints of steps 150 and 200."""
    path = tmp_path_factory.mktemp("two") / "run"
    run(path, "training.total_frames=800", "checkpoint.keep_last=2")
    return path


@pytest.fixture
def resumed(two_checkpoints: Path, tmp_path: Path) -> Callable[..., Path]:
    """Makes copies of the run with events of resumes: a step, and a reason or None for an exact one."""

    def make(*resumes: tuple[int, str | None]) -> Path:
        path = Path(shutil.copytree(two_checkpoints, tmp_path / "run", symlinks=True))
        with (path / "events.jsonl").open("a") as file:
            for step, reason in resumes:
                events = [{"kind": "resumed", "step": step}]
                if reason is not None:
                    events += [{"kind": "inexact", "step": step, "message": f"{MAY_DIFFER}{reason}"}]
                file.writelines(f"{json.dumps(event)}\n" for event in events)
        return path

    return make


@pytest.mark.parametrize("step", [100, 150])
def test_records_after_a_resume_on_another_device_need_not_be_repeated(
    resumed: Callable[..., Path], other_weights: Callable[[int], None], step: int
) -> None:
    other_weights(1)
    found = verified(resumed((step, OTHER_DEVICE)), checkpoint="step_000000150")
    assert (found.verdict, found.differences) == ("repeats", ())
    assert f"resumed at step {step}: {OTHER_DEVICE}" in found.caveats


def test_records_of_a_run_that_was_not_resumed_are_to_be_repeated(
    resumed: Callable[..., Path], other_weights: Callable[[int], None]
) -> None:
    other_weights(1)
    assert verified(resumed(), checkpoint="step_000000150").verdict == "differs"


def test_records_after_a_checkpoint_without_its_replay_need_not_be_repeated(
    tmp_path: Path, other_weights: Callable[[int], None]
) -> None:
    run(tmp_path / "run", "training.total_frames=800", "checkpoint.keep_last=2", "checkpoint.replay=false")
    other_weights(1)
    assert verified(tmp_path / "run", checkpoint="step_000000150").verdict == "repeats"


def inexact(records: Records, start: int) -> list[tuple[int, str]]:
    return [(resume.step, resume.reason) for resume in records.inexact_until(start)]


def test_inexact_resume_is_replaced_by_one_from_the_same_step_or_an_earlier_one(
    resumed: Callable[..., Path],
) -> None:
    path = resumed((100, "first"), (120, "second"), (100, "third"), (130, "fourth"), (130, None))
    records = records_of(RunDirectory(path))
    assert records.inexact == (InexactResume(step=100, reason="third"),)
    assert inexact(records, 120) == [(100, "third")]


def test_records_after_a_later_exact_resume_are_to_be_repeated(resumed: Callable[..., Path]) -> None:
    records = records_of(RunDirectory(resumed((100, "first"), (130, None))))
    assert inexact(records, 150) == []


def test_later_resume_explains_nothing_before_it(resumed: Callable[..., Path]) -> None:
    records = records_of(RunDirectory(resumed((100, "first"), (160, "second"))))
    assert inexact(records, 150) == [(100, "first")]


def test_resume_with_other_threads_explains_no_difference(resumed: Callable[..., Path]) -> None:
    (reason,) = resume_exactness.other_threads(before=1, now=2)
    records = records_of(RunDirectory(resumed((100, reason))))
    assert records.inexact == (InexactResume(step=100, reason=reason),)
    assert inexact(records, 200) == []
