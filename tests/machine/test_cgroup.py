import os
from pathlib import Path

import pytest

from atari_dqn.machine.cgroup import ControlGroups
from atari_dqn.machine.hardware import find_hardware, usable_cores


def groups(root: Path, membership: str, files: dict[str, str]) -> ControlGroups:
    for name, text in files.items():
        (root / "fs" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "fs" / name).write_text(text + "\n")
    (root / "membership").write_text(membership + "\n")
    return ControlGroups(mount=root / "fs", membership=root / "membership")


def test_version_2_quota_is_in_cores(tmp_path: Path) -> None:
    assert groups(tmp_path, "0::/job", {"job/cpu.max": "150000 100000"}).cores() == 1.5


def test_version_1_quota_is_in_cores(tmp_path: Path) -> None:
    files = {"cpu/job/cpu.cfs_quota_us": "300000", "cpu/job/cpu.cfs_period_us": "100000"}
    assert groups(tmp_path, "2:cpu:/job", files).cores() == 3.0


def test_controllers_of_version_1_may_share_a_group(tmp_path: Path) -> None:
    files = {"cpu/job/cpu.cfs_quota_us": "300000", "cpu/job/cpu.cfs_period_us": "100000"}
    assert groups(tmp_path, "2:cpu,cpuacct:/job", files).cores() == 3.0


@pytest.mark.parametrize(("name", "text"), [("cpu.max", "max 100000"), ("cpu.cfs_quota_us", "-1")])
def test_missing_quota_means_no_limit(tmp_path: Path, name: str, text: str) -> None:
    assert groups(tmp_path, "0::/", {name: text, "cpu.cfs_period_us": "100000"}).cores() is None


def test_smallest_limit_of_all_parent_groups_counts(tmp_path: Path) -> None:
    files = {"memory.max": "max", "a/memory.max": "4000", "a/b/memory.max": "9000"}
    assert groups(tmp_path, "0::/a/b", files).memory_bytes() == 4000


def test_limit_is_found_where_a_container_sees_its_group_as_the_root(tmp_path: Path) -> None:
    files = {"memory/memory.limit_in_bytes": "5000"}
    assert groups(tmp_path, "4:memory:/docker/0123", files).memory_bytes() == 5000


def test_huge_limit_of_version_1_means_no_limit(tmp_path: Path) -> None:
    files = {"memory/memory.limit_in_bytes": "9223372036854771712"}
    assert groups(tmp_path, "4:memory:/", files).memory_bytes() is None


def test_memory_left_counts_cached_files_as_free(tmp_path: Path) -> None:
    files = {"memory.max": "1000", "memory.current": "700", "memory.stat": "anon 400\ninactive_file 300"}
    assert groups(tmp_path, "0::/", files).memory_left_bytes() == 600


def test_memory_in_use_beyond_the_limit_leaves_nothing(tmp_path: Path) -> None:
    files = {"memory.max": "1000", "memory.current": "1200"}
    assert groups(tmp_path, "0::/", files).memory_left_bytes() == 0


def test_without_control_groups_nothing_is_limited(tmp_path: Path) -> None:
    absent = ControlGroups(mount=tmp_path / "fs", membership=tmp_path / "membership")
    assert (absent.cores(), absent.memory_bytes(), absent.memory_left_bytes()) == (None, None, None)


def test_usable_cores_are_limited_by_the_quota_and_at_least_one(tmp_path: Path) -> None:
    assert usable_cores(groups(tmp_path, "0::/", {"cpu.max": "10000 100000"})) == 1


def test_version_1_counts_cached_files_of_the_groups_below_as_free(tmp_path: Path) -> None:
    files = {
        "memory/memory.limit_in_bytes": "1000",
        "memory/memory.usage_in_bytes": "700",
        "memory/memory.stat": "inactive_file 10\ntotal_inactive_file 300",
    }
    assert groups(tmp_path, "4:memory:/", files).memory_left_bytes() == 600


def test_memory_left_is_the_least_of_all_parent_groups(tmp_path: Path) -> None:
    above = {"a/memory.max": "4000", "a/memory.current": "3900"}
    files = above | {"a/b/memory.max": "1000", "a/b/memory.current": "500"}
    assert groups(tmp_path, "0::/a/b", files).memory_left_bytes() == 100


def test_part_of_a_core_in_the_quota_is_a_usable_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    assert usable_cores(groups(tmp_path, "0::/", {"cpu.max": "150000 100000"})) == 2


def test_hardware_in_a_container_has_the_memory_and_the_free_memory_of_its_limit(tmp_path: Path) -> None:
    files = {"memory.max": "1000", "memory.current": "700", "memory.stat": "inactive_file 100"}
    hardware = find_hardware(tmp_path, groups(tmp_path, "0::/", files), with_gpus=False)
    assert (hardware.memory_bytes, hardware.memory_available_bytes) == (1000, 400)
