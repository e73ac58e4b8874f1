"""Specs as arguments: the name of a shipped spec, a file, or a complete spec."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from atari_dqn.api.arguments import kind_of, path_of
from atari_dqn.errors import UserError
from atari_dqn.spec.keys import Scalar
from atari_dqn.spec.loader import ResolvedSpec, load_spec
from atari_dqn.spec.schema import Spec

SpecLike = str | Path | Spec
"""The name of a shipped spec, the path of a spec file, or the complete spec of an agent or a run."""
Overrides = Mapping[str, Scalar]
"""Values by dotted key, as `--set` of the command line: `{"seed": 2, "learner.batch_size": 64}`."""


def resolved_spec(spec: str | Path, overrides: Overrides | None = None) -> ResolvedSpec:
    """Load a spec and complete it from its track; `SpecError` lists every fault.

    `UserError` for anything but a name or a path.
    """
    expected = "the name of a shipped spec or a file, such as spec.toml of a run directory"
    return load_spec(path_of("spec", spec, expected=expected), assignments(overrides), where="overrides")


def assignments(overrides: Overrides | None) -> list[str]:
    """Write overrides as arguments of `--set`, with values in TOML: `toggles.double=true`.

    `UserError` for anything but a mapping from dotted keys.
    """
    given: object = {} if overrides is None else overrides
    if not isinstance(given, Mapping):
        raise UserError(
            f'overrides: found {kind_of(given)}, expected a mapping, such as {{"learner.batch_size": 64}}'
        )
    for key in given:
        if not isinstance(key, str):
            raise UserError(f'overrides: found the key {key!r}, expected one such as "learner.batch_size"')
    return [f"{key}={_toml(value)}" for key, value in given.items()]


def complete_spec(spec: SpecLike, overrides: Overrides | None = None) -> Spec:
    """Return a complete spec; `UserError` for overrides of one that is complete already, or for no spec."""
    if not isinstance(spec, Spec):
        expected = "the name of a shipped spec, a file, or the `spec` of an agent or a run"
        return resolved_spec(path_of("spec", spec, expected=expected), overrides).spec
    if overrides:
        raise UserError("overrides are for a spec by name or path; a complete spec is used as it is")
    return spec


def _toml(value: Scalar) -> str:
    """Write a value as TOML, so that a text such as "1" stays a text and a number of NumPy is a number."""
    value = value.item() if isinstance(value, np.generic) else value
    return json.dumps(value) if isinstance(value, bool | str) else repr(value)
