"""A run with other keys than those of the member whose name it has is refused, and counts for nothing."""

import fcntl
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from atari_dqn.machine.hardware import find_hardware
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.leases.owner import Owner
from atari_dqn.run.sweep.failures import Failure, read_failures
from atari_dqn.run.sweep.mismatch import mismatch
from atari_dqn.run.sweep.record import Member
from atari_dqn.run.sweep.status import SweepStatus
from atari_dqn.scale import training_process
from atari_dqn.scale.local import LocalSite
from atari_dqn.scale.members import load_sweep
from atari_dqn.scale.opening import OpenedSweep, open_sweep
from atari_dqn.scale.room import Needs, Placement, Room
from atari_dqn.scale.runner import Outcome, Runner
from atari_dqn.scale.scheduler import run_members
from atari_dqn.scale.site_workers import SiteWorkers
from atari_dqn.spec.digest import values_digest
from atari_dqn.spec.keys import Scalar, build
from atari_dqn.spec.loader import ResolvedSpec
from atari_dqn.spec.render import resolved_toml
from atari_dqn.view.sweep_text import failure_lines

FAKE = Path(__file__).with_name("fake_training.py")
HARDWARE = find_hardware(Path.cwd(), with_gpus=False)
PLACE = Placement(device="cpu", cores=(), threads=1)
REASON = "holds another run: learner.batch_size = 16 (expected 32); move it to another folder"
Open = Callable[..., OpenedSweep]


@pytest.fixture(autouse=True)
def fake_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_process, "own_command", lambda module: [sys.executable, str(FAKE)])


@pytest.fixture
def open_it(tmp_path: Path) -> Open:
    def opened(batch_size: int = 32) -> OpenedSweep:
        path = tmp_path / "mine.toml"
        path.write_text(f'spec = "catch_smoke"\nseeds = 1\nset.learner.batch_size = {batch_size}\n')
        return open_sweep(load_sweep(path), tmp_path / "runs", device="cpu", hardware=HARDWARE)

    return opened


@pytest.fixture
def opened(open_it: Open) -> OpenedSweep:
    return open_it()


@pytest.fixture
def member(opened: OpenedSweep) -> Member:
    return opened.record.members[0]


def make_run(opened: OpenedSweep, digest: str = "", without: str = "", **values: Scalar) -> RunDirectory:
    """Make the run directory of the only member, with other values of some keys."""
    (member,) = opened.record.members
    found = {**member.values, **values}
    resolved = ResolvedSpec(spec=build(found), name="other", deviations=())
    lines = [line for line in resolved_toml(resolved).splitlines() if not without or without not in line]
    path, text = opened.folder.path / member.name, "\n".join(lines)
    return RunDirectory.create(path, text, digest or values_digest(found), {})


def runner(opened: OpenedSweep) -> Runner:
    return Runner(folder=opened.folder, owner=Owner.current(), stop=Event(), report=lambda sentence: None)


def calls(opened: OpenedSweep) -> list[str]:
    (member,) = opened.record.members
    path = opened.folder.path / f"{member.name}.calls"
    return path.read_text().splitlines() if path.exists() else []


def test_a_run_with_the_keys_of_the_member_is_no_other(opened: OpenedSweep, member: Member):
    assert mismatch(make_run(opened), member) is None


def test_a_run_that_has_not_begun_is_no_other(opened: OpenedSweep, member: Member):
    assert mismatch(opened.folder.run(member.name), member) is None


def test_a_run_with_other_keys_is_described_with_what_is_expected(opened: OpenedSweep, member: Member):
    run = make_run(opened, **{"learner.batch_size": 16})
    assert mismatch(run, member) == Failure(kind="invalid", reason=f"{run.path} {REASON}", exit_code=2)


def test_a_run_with_another_seed_is_another(opened: OpenedSweep, member: Member):
    found = mismatch(make_run(opened, seed=2), member)
    assert found is not None
    assert "seed = 2 (expected 1)" in found.reason


def test_a_run_whose_digest_another_version_computed_is_compared_by_its_keys(
    opened: OpenedSweep, member: Member
):
    assert mismatch(make_run(opened, digest="of an earlier version"), member) is None


def test_a_key_that_is_newer_than_the_run_makes_no_difference(opened: OpenedSweep, member: Member):
    run = make_run(opened, digest="of an earlier version", without="target_rate")
    assert mismatch(run, replace(member, values={**member.values, "learner.target_rate": 0.5})) is None


@pytest.mark.parametrize(("rate", "is_other"), [(1.0, False), (0.5, True)])
def test_a_key_that_is_newer_than_the_record_is_expected_at_its_value_of_earlier_versions(
    opened: OpenedSweep, member: Member, rate: float, is_other: bool
):
    earlier = {key: value for key, value in member.values.items() if key != "learner.target_rate"}
    run = make_run(opened, digest="of this version", **{"learner.target_rate": rate})
    assert (mismatch(run, replace(member, values=earlier)) is not None) == is_other


def test_a_run_with_another_period_of_checkpoints_is_no_other(opened: OpenedSweep, member: Member):
    run = make_run(opened, digest="of an earlier version", **{"checkpoint.period_frames": 7})
    assert mismatch(run, member) is None


@pytest.mark.parametrize("name", ["provenance.json", "spec.toml"])
def test_a_run_that_cannot_be_read_is_left_to_its_training(opened: OpenedSweep, member: Member, name: str):
    run = make_run(opened, **{"learner.batch_size": 16})
    (run.path / name).write_text("damaged")
    assert mismatch(run, member) is None


def test_a_run_that_may_not_be_read_is_not_trained_and_not_shown_as_new(
    opened: OpenedSweep, member: Member, monkeypatch: pytest.MonkeyPatch
):
    run = make_run(opened)
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != run.path)
    status = SweepStatus(opened.folder.path)
    status.refresh()
    outcome = runner(opened).run(member, PLACE)
    assert [each.state for each in status.members] == ["invalid"]
    assert outcome.failure is not None
    assert outcome.failure.reason == f"cannot read {run.path}: permission denied; make it readable"
    assert calls(opened) == []


def test_another_run_is_not_resumed_under_the_name_of_a_member(opened: OpenedSweep, member: Member):
    run = make_run(opened, **{"learner.batch_size": 16})
    outcome = runner(opened).run(member, PLACE)
    assert outcome.failure is not None
    assert outcome.failure.reason == f"{run.path} {REASON}"
    assert read_failures(opened.folder.failures) == {member.name: outcome.failure}
    assert calls(opened) == []


def test_another_run_that_has_finished_is_not_counted_as_a_member_that_has(
    opened: OpenedSweep, member: Member
):
    make_run(opened, **{"learner.batch_size": 16}).summary.write_text("{}")
    site = LocalSite(runner(opened), Room(HARDWARE, ["cpu"], cores=[0]), Needs(HARDWARE, 1))
    result = run_members(
        opened.record.members,
        opened.folder,
        SiteWorkers(site, opened.folder.leases, period_seconds=0.1),
        is_interrupted=lambda: False,
        show=lambda names: None,
        report=lambda sentence: None,
    )
    assert (result.finished, list(result.failed)) == ((), [member.name])


def test_the_status_of_a_member_has_nothing_of_another_run(opened: OpenedSweep):
    run = make_run(opened, **{"learner.batch_size": 16})
    run.summary.write_text("{}")
    (run.tables / "update_log.csv").write_text("step,env_frames\n1,4\n500,2000\n")
    status = SweepStatus(opened.folder.path)
    status.refresh()
    (found,) = status.members
    assert (found.state, found.env_frames, found.total_frames) == ("invalid", 0, 4_000)
    assert next(failure_lines(status)) == f"{found.member.name} invalid: {run.path} {REASON}"


def test_a_run_that_takes_the_place_of_another_is_noticed(opened: OpenedSweep, member: Member):
    run = make_run(opened, **{"learner.batch_size": 16})
    status = SweepStatus(opened.folder.path)
    status.refresh()
    run.path.rename(opened.folder.path / "elsewhere")
    make_run(opened).summary.write_text("{}")
    status.refresh()
    assert [each.state for each in status.members] == ["finished"]


def test_a_member_that_another_command_has_changed_is_not_begun(open_it: Open):
    before = open_it()
    after = open_it(batch_size=16)
    assert before.record.members[0].name == after.record.members[0].name
    assert runner(before).run(before.record.members[0], PLACE) == Outcome(kind="lost")
    assert calls(before) == []


def test_a_member_is_not_begun_while_another_command_changes_the_sweep(opened: OpenedSweep, member: Member):
    with opened.folder.record_lock.open("a") as changing:
        fcntl.flock(changing, fcntl.LOCK_EX)
        assert runner(opened).run(member, PLACE) == Outcome(kind="lost")
    assert runner(opened).run(member, PLACE) == Outcome(kind="finished")


def test_a_member_that_the_file_has_lost_meanwhile_goes_on_once_it_has_begun(
    open_it: Open,
):
    before = open_it()
    make_run(before)
    open_it(batch_size=16)
    assert runner(before).run(before.record.members[0], PLACE) == Outcome(kind="finished")
