"""The schema as a flat table of dotted keys, and conversions between a `Spec` and values by dotted key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from atari_dqn.registry import entry_point_names
from atari_dqn.spec.constraints import AUTO, Auto, Bound, Extensible, When
from atari_dqn.spec.schema import Spec

Scalar = bool | int | float | str
"""Type of a key's value. A key that does not apply has no value and is absent from a mapping of values."""

Values = Mapping[str, Scalar]
"""Values by dotted key."""


@dataclass(frozen=True, kw_only=True)
class Key:
    """The declaration of a key in the schema."""

    name: str
    """The dotted key, such as `learner.batch_size`."""
    kind: type[Scalar]
    """bool, int, float or str."""
    choices: tuple[str, ...]
    """The strings that the schema allows, without those of other packages; empty for a key without a list."""
    bounds: tuple[Bound, ...]
    """Ranges that must all contain the value."""
    when: tuple[When, ...]
    """Conditions under which the key applies; empty if it always does."""
    group: str | None = None
    """The group of entry points with which other packages extend `choices`."""
    auto: bool = False
    """Whether a spec file may have `auto`, which `machine.automatic` resolves when a run starts."""

    def allows(self, choice: str) -> bool:
        """Return whether a string is one of the choices, or the name of another package's part."""
        # the schema's choices first: `added` reads the metadata of every installed package
        return choice in self.choices or choice in self.added

    @property
    def added(self) -> tuple[str, ...]:
        """The choices that installed packages add."""
        return () if self.group is None else entry_point_names(self.group)

    @property
    def section(self) -> str:
        """The part before the dot; empty for a top-level key."""
        return self.name.rpartition(".")[0]

    @property
    def leaf(self) -> str:
        """The part after the dot."""
        return self.name.rpartition(".")[2]

    def applies(self, values: Values) -> bool:
        """Return whether the key applies to a spec with these values."""
        return self.unmet(values) is None

    def unmet(self, values: Values) -> When | None:
        """Return the first condition that `values` do not meet; None if the key applies."""
        return next((when for when in self.when if not when.holds(values.get(when.key))), None)


def _section_types() -> dict[str, type[Any]]:
    hints: dict[str, type[Any]] = get_type_hints(Spec)
    return {name: hint for name, hint in hints.items() if is_dataclass(hint)}


def _key(name: str, hint: Any) -> Key:
    inner, *constraints = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    types = [inner] if get_origin(inner) is Literal else list(get_args(inner)) or [inner]
    kinds = [kind for kind in types if kind not in (NoneType, Auto)]
    choices = get_args(kinds[0]) if get_origin(kinds[0]) is Literal else ()
    kinds = [type(choices[0])] if choices else kinds
    assert len(kinds) == 1, f"{name}: one type, or one type and None, got {kinds}"
    bounds = tuple(each for each in constraints if not isinstance(each, When | Extensible))
    assert kinds != [float] or bounds, f"{name}: a number needs a range, because a range excludes NaN"
    return Key(
        name=name,
        kind=kinds[0],
        choices=choices,
        bounds=bounds,
        when=tuple(constraint for constraint in constraints if isinstance(constraint, When)),
        group=next((one.group for one in constraints if isinstance(one, Extensible)), None),
        auto=Auto in types,
    )


def _keys() -> dict[str, Key]:
    keys: dict[str, Key] = {}
    for name, hint in get_type_hints(Spec, include_extras=True).items():
        if not is_dataclass(hint):
            keys[name] = _key(name, hint)
            continue
        for leaf, leaf_hint in get_type_hints(hint, include_extras=True).items():
            keys[f"{name}.{leaf}"] = _key(f"{name}.{leaf}", leaf_hint)
    return keys


SECTIONS: Mapping[str, type[Any]] = MappingProxyType(_section_types())
"""The dataclass of each section, in the schema's order."""

KEYS: Mapping[str, Key] = MappingProxyType(_keys())
"""The declaration of each dotted key, in the schema's order."""

AUTO_KEYS = tuple(name for name, key in KEYS.items() if key.auto)
"""Keys that may be `auto` in a spec file, but not in the spec of a run."""


def unresolved(values: Values) -> list[str]:
    """Return the keys that are `auto` and must be resolved before a run begins."""
    return [key for key in AUTO_KEYS if values.get(key) == AUTO]


def flatten(spec: Spec) -> dict[str, Scalar]:
    """Return the values of a spec by dotted key, in the schema's order, without keys that do not apply."""
    values: dict[str, Scalar] = {}
    for name, key in KEYS.items():
        owner = getattr(spec, key.section) if key.section else spec
        value = getattr(owner, key.leaf)
        if value is not None:
            values[name] = value
    return values


def added_parts(spec: Spec) -> list[tuple[str, str]]:
    """Return the group and the name of each part of a spec that another package adds."""
    values = flatten(spec)
    return [
        (key.group, str(values[name]))
        for name, key in KEYS.items()
        if key.group and name in values and values[name] not in key.choices
    ]


def build(values: Values) -> Spec:
    """Build the spec with these values, which must be valid; an absent key becomes None."""
    sections = {
        section: owner(**{field.name: values.get(f"{section}.{field.name}") for field in fields(owner)})
        for section, owner in SECTIONS.items()
    }
    top: dict[str, Any] = {name: values[name] for name, key in KEYS.items() if not key.section}
    return Spec(**top, **sections)
