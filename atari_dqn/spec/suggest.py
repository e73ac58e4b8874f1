"""Suggestions for misspelt names, as the end of an error message."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return `; did you mean "…"?` with the candidate closest to `word`; empty if none is close."""
    near = difflib.get_close_matches(word, list(candidates), n=1)
    return f'; did you mean "{near[0]}"?' if near else ""


def did_you_mean_key(name: str, known: Iterable[str]) -> str:
    """Return a suggestion with the known dotted key closest to `name`; empty if none is close.

    A key with the same last part in any section comes first, then similar keys of the same section.
    """
    known = list(known)
    section, _, leaf = name.rpartition(".")
    for other in known:
        if other.rpartition(".")[2] == leaf:
            return f'; did you mean "{other}"?'
    siblings = {other.rpartition(".")[2]: other for other in known if other.rpartition(".")[0] == section}
    near = difflib.get_close_matches(leaf, siblings, n=1)
    return f'; did you mean "{siblings[near[0]]}"?' if near else did_you_mean(name, known)
