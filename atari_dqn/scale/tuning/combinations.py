"""The complete spec of a trial, and a check of the combinations of values that a space allows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

from atari_dqn.formatting import setting
from atari_dqn.rng import numpy_stream
from atari_dqn.scale.tuning.space import Dimension, Settings
from atari_dqn.spec.check import show
from atari_dqn.spec.errors import Fault, SpecError
from atari_dqn.spec.keys import KEYS, Scalar, flatten
from atari_dqn.spec.loader import resolve_entries
from atari_dqn.spec.parse import Entry

MOST_CHECKED = 256
"""Combinations that are checked before a tune begins; of more, so many are drawn at random."""


def complete(where: str, base: Mapping[str, Scalar], settings: Settings) -> dict[str, Scalar]:
    """Return the complete spec of a trial by dotted key; `SpecError` if the values contradict each other."""
    written = {**base, **settings}
    entries = [Entry(key, value, where) for key, value in written.items()]
    return flatten(resolve_entries(Path(where), entries).spec)


def combination_faults(where: str, base: Mapping[str, Scalar], space: Sequence[Dimension]) -> Iterator[Fault]:
    """Yield each fault that some combination of choices and ends of ranges has, with an example of one."""
    found: dict[Fault, Settings] = {}
    for settings in extreme_settings(space):
        try:
            complete(where, base, settings)
        except SpecError as error:
            for fault in error.faults:
                found.setdefault(fault, settings)
    reported = set()
    for fault, settings in found.items():
        if fault.key not in reported:
            reported.add(fault.key)
            text = ", ".join(f"{key} = {setting(value)}" for key, value in settings.items())
            hint = _condition_hint(fault.key, settings)
            yield Fault(where, fault.key, f"{fault.problem}{hint} (in a trial with {text})")


def _condition_hint(key: str, settings: Settings) -> str:
    """Return the condition with which a searched key would apply to every trial that has it."""
    conditions = KEYS[key].when if key in settings else ()
    text = ", ".join(f"{when.key} = {show(when.values[0])}" for when in conditions)
    return f", or search it when = {{ {text} }}" if text else ""


def extreme_settings(space: Sequence[Dimension]) -> Iterator[Settings]:
    """Yield combinations of choices and ends of ranges: every one, or else `MOST_CHECKED` drawn at random."""
    if math.prod(len(each.extremes) for each in space) <= MOST_CHECKED:
        drawn: Iterator[Sequence[Scalar]] = product(*(each.extremes for each in space))
    else:
        rng = numpy_stream(0, "tune combinations")
        drawn = (
            [each.extremes[rng.integers(len(each.extremes))] for each in space] for _ in range(MOST_CHECKED)
        )
    for values in drawn:
        settings: dict[str, Scalar] = {}
        for dimension, value in zip(space, values, strict=True):
            if dimension.applies(settings):
                settings[dimension.key] = value
        yield settings
