import hashlib
import json
import shutil
from pathlib import Path

import pytest
from tiny import CPU, run

from atari_dqn.cli.verify import document, text
from atari_dqn.errors import UserError
from atari_dqn.files import json_document
from atari_dqn.run import RunDirectory
from atari_dqn.verify.proof import Verification, first_difference, verify_run


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run with the checkpoints of frames 600 and 800."""
    path = tmp_path_factory.mktemp("whole") / "run"
    run(path, "training.total_frames=800", "checkpoint.keep_last=2")
    return path


def tree(path: Path) -> dict[str, str]:
    return {
        str(entry.relative_to(path)): hashlib.sha256(entry.read_bytes()).hexdigest()
        for entry in path.rglob("*")
        if entry.is_file()
    }


@pytest.fixture(scope="module")
def found(whole: Path) -> Verification:
    before = tree(whole)
    result = verify_run(whole, checkpoint=None, frames=200, device=CPU)
    assert tree(whole) == before, "nothing is written into the run directory"
    return result


def test_run_that_repeats_is_exact(found: Verification) -> None:
    assert (found.verdict, found.differences, found.caveats) == ("exact", (), ())


def test_run_is_played_on_from_the_newest_checkpoint_with_another_after_it(found: Verification) -> None:
    assert (found.checkpoint, found.from_frames, found.to_frames) == ("step_000000150", 600, 800)
    assert found.recorded == ("step_000000200",)
    assert sum(found.own_rows.values()) > 0


def test_verdict_is_the_last_line_and_lines_are_short(found: Verification) -> None:
    lines = text(found).splitlines()
    assert lines[-1] == "exact: all of it is the same to the last bit"
    assert max(len(line) for line in lines[1:]) <= 80


def test_verification_is_plain_json(found: Verification) -> None:
    plain = json.loads(json_document(document(found)))
    assert (plain["verdict"], plain["from_frames"]) == ("exact", 600)


@pytest.mark.slow
def test_run_with_nothing_recorded_after_its_last_checkpoint_is_not_called_exact(whole: Path) -> None:
    found = verify_run(whole, checkpoint="latest", frames=40, device=CPU)
    assert found.verdict == "repeats"
    assert "recorded nothing" in found.caveats[0]


@pytest.mark.slow
def test_run_is_played_again_from_its_beginning(whole: Path) -> None:
    found = verify_run(whole, checkpoint="beginning", frames=800, device=CPU)
    assert (found.verdict, found.from_frames) == ("exact", 0)
    assert found.recorded == ("step_000000150", "step_000000200")


@pytest.mark.slow
def test_row_that_playing_on_does_not_repeat_is_named(whole: Path, tmp_path: Path) -> None:
    path = tmp_path / "run"
    shutil.copytree(whole, path, symlinks=True)
    with (path / "train_log.csv").open("a") as file:
        file.write(
            "201,804,99,0,1.0,1,4,game_over,0.5\n"
        )  # a row after the last checkpoint, as of a killed run
    found = verify_run(path, checkpoint="latest", frames=400, device=CPU)
    assert found.verdict == "differs"
    assert found.differences[0].startswith("train_log.csv, row 1 from there on: 201,804,99")


def test_run_that_another_process_holds_is_not_verified(whole: Path) -> None:
    with RunDirectory.open(whole).locked(), pytest.raises(UserError, match="is being run by another process"):
        verify_run(whole, checkpoint=None, frames=200, device=CPU)


def test_first_difference_is_the_first_part_in_the_states_order() -> None:
    expected = {"clock.steps": "a", "policy.stream": "b", "learner.updates": "c"}
    assert first_difference(expected, expected) is None
    assert first_difference(expected, {**expected, "learner.updates": "x", "policy.stream": "y"}) == (
        "policy.stream"
    )
    assert first_difference(expected, {**expected, "more": "z"}) == "more"
