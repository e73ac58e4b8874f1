"""Write a complete spec as TOML."""

from __future__ import annotations

from collections.abc import Iterator

import tomli_w

from atari_dqn.spec.docs import key_docs
from atari_dqn.spec.keys import KEYS, flatten
from atari_dqn.spec.loader import ResolvedSpec


def resolved_toml(resolved: ResolvedSpec, *, documented: bool = False) -> str:
    """Write every key as TOML in the schema's order; `documented` adds the documentation of each key."""
    return "\n".join([*_header(resolved), *_lines(resolved, documented=documented), ""])


def _header(resolved: ResolvedSpec) -> Iterator[str]:
    yield "# A complete spec: later changes of its track do not change it."
    yield f"# Track {resolved.track_label}; keys that deviate: {', '.join(resolved.deviations) or 'none'}."


def _lines(resolved: ResolvedSpec, *, documented: bool) -> Iterator[str]:
    section = ""
    for name, value in flatten(resolved.spec).items():
        key = KEYS[name]
        if key.section != section:
            section = key.section
            yield f"\n[{section}]"
        if documented:
            yield f"# {key_docs()[name]}"
        yield tomli_w.dumps({key.leaf: value}).rstrip("\n")
