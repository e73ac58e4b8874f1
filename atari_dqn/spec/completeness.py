"""Check that a spec has exactly the keys that apply to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from atari_dqn.spec.check import Checked, expectation, show
from atari_dqn.spec.constraints import When
from atari_dqn.spec.errors import Fault
from atari_dqn.spec.keys import KEYS, Key, Values


def key_faults(
    checked: Checked, values: Values, *, where: str, absent: Collection[str] = ()
) -> Iterator[Fault]:
    """Yield a fault for each written key that does not apply to `values` and each missing key that does.

    Keys with an invalid value are skipped, as are keys whose condition depends on one. Keys in `absent` are
    not required. `where` names the file in the faults of missing keys.
    """
    for name, key in KEYS.items():
        if name in checked.invalid or any(when.key in checked.invalid for when in key.when):
            continue
        applies = key.applies(values)
        if name in checked.values and not applies:
            yield Fault(checked.where[name], name, _does_not_apply(key, values))
        elif name not in values and applies and name not in absent:
            yield Fault(where, name, _missing(key))


def _does_not_apply(key: Key, values: Values) -> str:
    when = key.unmet(values)
    assert when is not None, "a key without a condition always applies"
    needed = _shown(when)
    found = f"{when.key} is {show(values[when.key])}" if when.key in values else "that is not set"
    return f"belongs to {needed}, but {found}; remove it, or set {needed}"


def _missing(key: Key) -> str:
    choices = " and ".join(map(_shown, key.when))
    reason = f" (needed by {choices})" if choices else ""
    return f"missing{reason}; expected {expectation(key)}"


def _shown(when: When) -> str:
    return f"{when.key} {when.relation} {' or '.join(map(show, when.values))}"
