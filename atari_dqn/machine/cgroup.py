"""Read the limits that a container sets for a process: Linux control groups, versions 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_UNLIMITED_BYTES = 2**60
"""Version 1 writes "no limit" as a number near 2⁶³."""


@dataclass(frozen=True, kw_only=True)
class ControlGroups:
    """The control groups of this process, and their limits. On other systems there are no limits."""

    mount: Path = Path("/sys/fs/cgroup")
    membership: Path = Path("/proc/self/cgroup")

    def cores(self) -> float | None:
        """Return the limit of processor time, in cores; None without a limit."""
        quotas = [quota for folder in self._folders("cpu") if (quota := _quota(folder)) is not None]
        return min(quotas, default=None)

    def memory_bytes(self) -> int | None:
        """Return the limit of memory; None without a limit."""
        limits = [limit for folder in self._folders("memory") if (limit := _memory_limit(folder)) is not None]
        return min(limits, default=None)

    def memory_left_bytes(self) -> int | None:
        """Return the memory left below the limit, with reclaimable file caches; None without a limit."""
        left = [
            limit - _memory_in_use(folder)
            for folder in self._folders("memory")
            if (limit := _memory_limit(folder)) is not None
        ]
        return max(0, min(left)) if left else None

    def _folders(self, controller: str) -> Iterator[Path]:
        """Yield the folders of this process's group of a controller and of the groups above it."""
        for line in _text(self.membership).splitlines():
            _, controllers, group = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            root = self.mount / controller if controllers else self.mount
            folder = root / group.lstrip("/")
            yield from (place for place in (folder, *folder.parents) if place.is_relative_to(root))


def _quota(folder: Path) -> float | None:
    quota, _, period = _text(folder / "cpu.max").partition(" ")
    if not quota:
        quota, period = _text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us")
    if not quota.isdecimal() or not period.isdecimal():  # "max", and -1 in version 1, are no limit
        return None
    return int(quota) / int(period)


def _memory_limit(folder: Path) -> int | None:
    text = _text(folder / "memory.max") or _text(folder / "memory.limit_in_bytes")
    limit = int(text) if text.isdecimal() else _UNLIMITED_BYTES
    return limit if limit < _UNLIMITED_BYTES else None


def _memory_in_use(folder: Path) -> int:
    used = _text(folder / "memory.current") or _text(folder / "memory.usage_in_bytes") or "0"
    statistics = dict(line.split(" ", 1) for line in _text(folder / "memory.stat").splitlines())
    reclaimable = statistics.get("total_inactive_file", statistics.get("inactive_file", "0"))
    return max(0, int(used) - int(reclaimable))


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
