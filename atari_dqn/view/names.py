"""Shorten the names of runs for a column, so that different runs keep different names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

_ELLIPSIS = "…"
_SEPARATORS = "_,="
"""Between the words of a run's name."""


def shortened(name: str, width: int) -> str:
    """Replace the middle of a name that is too long by an ellipsis; the seed is at its end."""
    if len(name) <= width:
        return name
    end = width // 2
    return f"{name[: width - end - 1]}{_ELLIPSIS}{name[len(name) - end :]}"


def distinct_names(names: Iterable[str], width: int) -> dict[str, str]:
    """Shorten names to a width so that different ones stay different; return the short ones by name.

    An ellipsis takes the place of the middle. If two names became equal by that, each keeps instead the
    places at which it differs from another one, and letters around them: `…16,d…tru…seed1`. They are wider
    than `width` only if even these places are.
    """
    short = {name: shortened(name, width) for name in names}
    return short if len({*short.values()}) == len(short) else _with_differences(short.keys(), width)


def _with_differences(names: Collection[str], width: int) -> dict[str, str]:
    """Keep of each name the places at which it differs from another one, and as much around them as fits."""
    forks = _forks(names)
    found = {name: _kept(name, width, forks[name]) for name in names}
    for more in range(max(map(len, names))):
        longer = {name: _kept(name, width, _around(name, forks[name], more)) for name in names}
        if max(map(len, longer.values())) > width:
            break
        found = longer
    return found


def _forks(names: Collection[str]) -> dict[str, list[int]]:
    """Return for each name the places up to which another name is the same, and goes on differently."""
    following: dict[str, set[str]] = {}
    for name in names:
        for place in range(len(name) + 1):
            following.setdefault(name[:place], set()).add(name[place : place + 1])
    return {
        name: [place for place in range(len(name) + 1) if len(following[name[:place]]) > 1] for name in names
    }


def _around(name: str, forks: Iterable[int], more: int) -> Iterator[int]:
    """Yield the places from the beginning of each fork's word to some letters after the fork.

    They depend on what is before a fork alone. So two names keep the same places up to the one at which they
    differ, and what is kept of them differs too.
    """
    for fork in forks:
        word = max(name.rfind(separator, 0, fork) for separator in _SEPARATORS) + 1
        yield from range(word, fork + 1 + more)


def _kept(name: str, width: int, places: Iterable[int]) -> str:
    """Return the letters of a name at some places, with an ellipsis for each gap of several letters."""
    if len(name) <= width:
        return name
    text, end = "", 0
    for place in [*sorted({place for place in places if place < len(name)}), len(name)]:
        gap = name[end:place]
        text += (gap if len(gap) < 2 else _ELLIPSIS) + name[place : place + 1]
        end = place + 1
    return text
