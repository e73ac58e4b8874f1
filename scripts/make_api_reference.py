"""Make docs/api_reference.md, the reference of public names, from their signatures and docstrings."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import atari_dqn

PAGE = Path(__file__).parents[1] / "docs" / "api_reference.md"
INTRODUCTION = """# Every public name

Made by `python scripts/make_api_reference.py`, from signatures and docstrings, as `help` prints them.
[The library](api.md) is the introduction, with examples.
"""
COLUMNS = 100


class Bare(str):
    """An annotation that is printed without quotation marks."""

    __slots__ = ()
    __repr__ = str.__str__


def described(name: str, public: Any) -> Iterator[str]:
    """Yield the heading, signature and docstring of a name, then those of a class's public members."""
    yield f"{'#' * (name.count('.') + 1)} {name}\n"
    yield f"```text\n{signature(name, public)}\n```\n"
    text = inspect.getdoc(public) or ""
    prose, _, example = text.partition("\n>>> ")
    yield f"{prose.strip()}\n"
    if example:
        yield f"```pycon\n>>> {example.strip()}\n```\n"
    if inspect.isclass(public):
        for member, value in vars(public).items():
            if not member.startswith("_") and inspect.getdoc(value):
                yield from described(f"{name}.{member}", value)


def signature(name: str, public: Any) -> str:
    """Return how a name is called, in several lines if one is too long; a property has only a type."""
    if isinstance(public, property):
        found = inspect.signature(public.fget).return_annotation if public.fget else ""
        return f"{name}: {found}"
    own = inspect.signature(public)
    arguments = [
        each.replace(annotation=Bare(each.annotation))
        for each in own.parameters.values()
        if each.name != "self"
    ]
    returned = Bare(own.return_annotation)
    line = f"{name}{own.replace(parameters=arguments, return_annotation=returned)}"
    if len(line) <= COLUMNS:
        return line
    starred = [f"    {each},\n" for each in arguments]
    keyword_only = [each.kind is each.KEYWORD_ONLY for each in arguments]
    if any(keyword_only):
        starred.insert(keyword_only.index(True), "    *,\n")
    return f"{name}(\n{''.join(starred)}) -> {returned}"


def page() -> str:
    """Make the page."""
    parts = [INTRODUCTION]
    for name in sorted(atari_dqn.__all__, key=str.lower):
        parts += described(f"dqn.{name}", atari_dqn._public(name))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
