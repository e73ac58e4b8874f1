"""Name the packages that add parts of a run where its weights do not fit them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.spec.added_packages import packages_of, without_code
from atari_dqn.spec.schema import Spec


@contextmanager
def explained_by_packages(spec: Spec, provenance: Mapping[str, Any]) -> Iterator[None]:
    """Convert a `DamagedError` of the block to a `UserError` if other packages add parts of the spec.

    The block restores a state from files that are as they were written, so that they are not damaged: the
    code of such a part has changed since the run began.
    """
    try:
        yield
    except DamagedError as error:
        packages = without_code(packages_of(spec))
        if not packages:
            raise
        began = provenance.get("versions", {})
        changes = " and ".join(_change(name, now, began.get(name)) for name, now in packages.items())
        problem = str(error).partition(";")[0]  # a remedy follows, which is for damage
        raise UserError(
            f"{problem}\nthe file is as it was written: "
            f"the code of {changes} has changed since the run began; install the earlier version"
        ) from error


def _change(name: str, now: str, before: str | None) -> str:
    return f"{name} (now {now}, then {before or 'an unrecorded version'})"
