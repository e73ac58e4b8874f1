"""Make docs/keys.md, the reference of every key of a spec, from the schema and the tracks."""

from collections.abc import Iterator
from pathlib import Path

from atari_dqn.spec.constraints import When
from atari_dqn.spec.docs import key_docs
from atari_dqn.spec.keys import KEYS, SECTIONS, Key
from atari_dqn.spec.schema import Spec
from atari_dqn.spec.tracks import load_parts, load_track

PAGE = Path(__file__).parents[1] / "docs" / "keys.md"
TRACKS = KEYS["track"].choices
INTRODUCTION = """# Every key of a spec

Made from the schema by `python scripts/make_key_reference.py`; `dqn spec show SPEC --docs` prints the same
with a spec's own values. A spec gives what differs from its track. `_frames` are emulator frames, `_steps`
agent steps, `_updates` gradient steps.
"""


def shown(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int) and value >= 10_000:
        return f"`{value:_}`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


def type_of(key: Key) -> str:
    if key.choices:
        return " · ".join(f"`{choice}`" for choice in (*key.choices, *(("auto",) if key.auto else ())))
    bounds = ", ".join(str(bound) for bound in key.bounds)
    name = {bool: "true or false", int: "integer", float: "number", str: "text"}[key.kind]
    return f"{name} {bounds}".strip() + (" · `auto`" if key.auto else "")


def belongs(choices: tuple[When, ...]) -> str:
    named = " and ".join(
        f"`{when.key} {when.relation} {' or '.join(shown(value).strip('`') for value in when.values)}`"
        for when in choices
    )
    return f" Only with {named}." if named else ""


def row(key: Key) -> str:
    defaults = [shown(load_track(track).get(key.name)) for track in TRACKS]
    meaning = key_docs()[key.name].replace("|", r"\|") + belongs(key.when)
    return f"| `{key.leaf}` | {type_of(key)} | {' | '.join(defaults)} | {meaning} |"


def table(section: str) -> Iterator[str]:
    yield f"| key | values | {' | '.join(f'track {track}' for track in TRACKS)} | meaning |"
    yield f"|---|---|{'---|' * len(TRACKS)}---|"
    yield from (row(key) for key in KEYS.values() if key.section == section)


def parts() -> Iterator[str]:
    yield "## What a choice brings along"
    yield ""
    yield "Where a spec chooses a part over its track's, these values come along unless it has its own."
    yield ""
    yield "| choice | values |"
    yield "|---|---|"
    for part in load_parts():
        brought = [f"`{key} = {shown(value).strip('`')}`" for key, value in part.values.items()]
        values = ", ".join(brought)
        yield f"| `{part.key} = {shown(part.value).strip('`')}` | {values or 'none'} |"


def page() -> str:
    lines = [INTRODUCTION, "## Top level", "", *table("")]
    for section, owner in SECTIONS.items():
        lines += [
            "",
            f"## `[{section}]`",
            "",
            (owner.__doc__ or "").strip().replace("\n\n    ", " "),
            "",
            *table(section),
        ]
    assert Spec.__doc__
    return "\n".join([*lines, "", *parts(), ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
