"""Check that a run directory with the name of a member of a sweep holds the run of this member."""

from __future__ import annotations

from collections.abc import Iterator

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files.permission import is_closed
from atari_dqn.formatting import printable, setting, shortened
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.sweep.failures import Failure
from atari_dqn.run.sweep.record import Member
from atari_dqn.spec.check import check_entries
from atari_dqn.spec.digest import cannot_change_results
from atari_dqn.spec.history import with_added_keys
from atari_dqn.spec.parse import read_toml, table_entries

_MOST_DIFFERENCES = 3


def mismatch(run: RunDirectory, member: Member) -> Failure | None:
    """Compare a run directory with a member of a sweep; return a failure if it holds a run of another spec.

    A budget that was raised by hand does not matter: `spec.toml` never changes. If the digests differ, the
    keys are compared, because other versions may compute another digest of the same spec. A directory that
    may not be read counts as another run's. Return None if the run's files are damaged: the commands that
    train or compare it report the damage.
    """
    if is_closed(run.path):
        return _invalid(f"cannot read {run.path}: permission denied; make it readable")
    try:
        if run.read_provenance()["spec"]["digest"] == member.digest:
            return None
        found = list(_differences(run, member))
    except (UserError, DamagedError):
        return None
    if not found:
        return None
    differences = shortened(found, _MOST_DIFFERENCES)
    return _invalid(f"{run.path} holds another run: {differences}; move it to another folder")


def _invalid(reason: str) -> Failure:
    return Failure(kind="invalid", reason=printable(reason), exit_code=UserError.exit_code)


def _differences(run: RunDirectory, member: Member) -> Iterator[str]:
    """Describe the keys of a run whose values differ from the member's.

    A key that only one of them has is left out: the other was written by an earlier version.
    """
    entries = table_entries(read_toml(run.spec), where=str(run.spec))
    expected = with_added_keys(member.values, {})
    for key, value in check_entries(entries).values.items():
        if key in expected and value != expected[key] and not cannot_change_results(key):
            yield f"{key} = {setting(value)} (expected {setting(expected[key])})"
