"""The runs of a sweep's folder have the order of its record."""

from pathlib import Path

from atari_dqn.run.folders import expand_run_paths
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.record import Member, SweepRecord, write_record
from atari_dqn.spec.keys import flatten
from atari_dqn.spec.loader import load_spec


def test_runs_are_in_the_order_of_the_sweep_then_former_ones_then_others_by_name(tmp_path: Path) -> None:
    values = flatten(load_spec("catch_smoke").spec)
    second, first, former = (Member.of(label, {**values, "seed": 1}) for label in ("b", "c", "a"))
    SweepFolder(tmp_path).create()
    record = SweepRecord(name="s", device="cpu", threads=1, members=(first, second), former=(former,))
    write_record(SweepFolder(tmp_path).record, record)
    for name in ("aa", "bb", second.name, first.name, former.name):
        (tmp_path / name).mkdir()
        (tmp_path / name / "spec.toml").touch()
    found = [path.name for path in expand_run_paths([tmp_path])]
    assert found == ["c_catch_seed1", "b_catch_seed1", "a_catch_seed1", "aa", "bb"]


def test_first_method_of_a_sweep_is_first_though_its_first_run_is_missing(tmp_path: Path) -> None:
    values = flatten(load_spec("catch_smoke").spec)
    members = [Member.of(label, {**values, "seed": seed}) for seed in (1, 2) for label in ("b", "a")]
    SweepFolder(tmp_path).create()
    record = SweepRecord(name="s", device="cpu", threads=1, members=tuple(members))
    write_record(SweepFolder(tmp_path).record, record)
    for member in members[1:]:
        (tmp_path / member.name).mkdir()
        (tmp_path / member.name / "spec.toml").touch()
    found = [path.name for path in expand_run_paths([tmp_path])]
    assert found == ["b_catch_seed2", "a_catch_seed1", "a_catch_seed2"]
