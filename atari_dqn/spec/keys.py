"""The schema as a flat table of dotted keys, and the ways between a `Spec` and dotted values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from atari_dqn.registry import entry_point_names
from atari_dqn.spec.constraints import Bound, Extensible, When
from atari_dqn.spec.schema import Spec

Scalar = bool | int | float | str
"""What a key's value may be. A key that does not apply has none: it is absent from a mapping of values."""

Values = Mapping[str, Scalar]
"""Values by dotted key."""


@dataclass(frozen=True, kw_only=True)
class Key:
    """What the schema says of one key."""

    name: str
    """Dotted, as `learner.batch_size`."""
    kind: type[Scalar]
    """bool, int, float or str."""
    choices: tuple[str, ...]
    """The only strings allowed; empty if any is."""
    bounds: tuple[Bound, ...]
    """Ranges that all must hold."""
    when: tuple[When, ...]
    """The choices of parts this key belongs to; empty if it always applies."""
    group: str | None = None
    """The entry points that other packages may add to `choices`."""

    def allows(self, choice: str) -> bool:
        """Tell whether a string is one of the choices, or the name of another package's part."""
        others = () if self.group is None else entry_point_names(self.group)
        return choice in self.choices or choice in others

    @property
    def section(self) -> str:
        """The part before the dot; empty for a top-level key."""
        return self.name.rpartition(".")[0]

    @property
    def leaf(self) -> str:
        """The part after the dot."""
        return self.name.rpartition(".")[2]

    def applies(self, values: Values) -> bool:
        """Return whether the key belongs in a spec with these values."""
        return self.unmet(values) is None

    def unmet(self, values: Values) -> When | None:
        """Return the first choice that `values` do not make, or None if the key applies."""
        return next((when for when in self.when if values.get(when.key) != when.value), None)


def _section_types() -> dict[str, type[Any]]:
    hints: dict[str, type[Any]] = get_type_hints(Spec)
    return {name: hint for name, hint in hints.items() if is_dataclass(hint)}


def _key(name: str, hint: Any) -> Key:
    inner, *constraints = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    literal = next((part for part in (inner, *get_args(inner)) if get_origin(part) is Literal), None)
    choices = get_args(literal)
    kinds = [type(choices[0])] if choices else [k for k in get_args(inner) or (inner,) if k is not NoneType]
    assert len(kinds) == 1, f"{name}: one type, or one type and None, got {kinds}"
    bounds = tuple(one for one in constraints if not isinstance(one, When | Extensible))
    assert kinds != [float] or bounds, f"{name}: a number needs a range, which keeps NaN out"
    return Key(
        name=name,
        kind=kinds[0],
        choices=choices,
        bounds=bounds,
        when=tuple(constraint for constraint in constraints if isinstance(constraint, When)),
        group=next((one.group for one in constraints if isinstance(one, Extensible)), None),
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
"""Every key of the schema by its dotted name, in the schema's order."""


def flatten(spec: Spec) -> dict[str, Scalar]:
    """Return a spec's values by dotted key, in the schema's order, without the keys that do not apply."""
    values: dict[str, Scalar] = {}
    for name, key in KEYS.items():
        owner = getattr(spec, key.section) if key.section else spec
        value = getattr(owner, key.leaf)
        if value is not None:
            values[name] = value
    return values


def build(values: Values) -> Spec:
    """Return the spec with these values, which must have been checked; an absent key becomes None."""
    sections = {
        section: owner(**{field.name: values.get(f"{section}.{field.name}") for field in fields(owner)})
        for section, owner in SECTIONS.items()
    }
    top: dict[str, Any] = {name: values[name] for name, key in KEYS.items() if not key.section}
    return Spec(**top, **sections)
