"""The vocabulary: words of ours for which the field has its own, found in names, comments, texts and pages.

A finding is `file:line: "word" in "token"; write …`. Files are grouped in rooms: a folder of the package or
of the tests, the pages of docs. `ALLOWED` holds what is legitimate, with the reason; `PENDING` the rooms that
are not rewritten yet.
"""

import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]

WORDS = {
    r"lanes?": "environment (a member of a batch of environments: environment slot)",
    r"ticks?": "iteration (of the loop); axis label",
    r"cells?": "index, time step",
    r"(num|frames|steps)_seen": "num_inserted; env_frames; steps",
    r"seen_(by|of)": "encoded",
    r"stand(s|ing)? still": "unchanged frame",
    r"preferences?": "advantages",
    r"backed_up": "bellman_target",
    r"judg(e|es|ed|ement|ing)": "compute_loss, LossOutput; verdict",
    r"hears?|heard": "set_noise; handle",
    r"told": "set, reported, shown; commit, count_updates",
    r"one_call|one_pass": "fused optimizer step",
    r"anatomy": "structure check",
    r"journals?": "metrics ring",
    r"rehears(e|es|ed|al)": "random draws recorded for replay",
    r"moved_by": "mutated_tensors",
    r"alarms?": "alert",
    r"beside": "reference; next to; with; in addition to",
    r"paces?": "time_to_score; speed",
    r"human_(text|numbers)": "formatting",
    r"somebody|someone|nobody|whoever|whomever": "the program or the part that acts",
}
"""Pattern of a word, in lower case with `_` between the parts of a name → what to write."""

SCOPES = {
    r"cells?": re.compile(r"(atari_dqn|tests)/(agent|assembly|fast|replay|train)/"),
}
"""Where a word is searched that is ordinary elsewhere: tables, images and boards have cells."""

METHODS = {"see": "encode", "think": "hidden", "hear": "set_noise", "tell": "set_noise, commit"}
"""Names of functions and attributes; in a sentence these are ordinary words."""

CLASSES = {
    "Rounded": "low-precision weight cache",
    "Anatomy": "structure check",
    "OneCall": "fused optimizer step",
    "Chain": "convolution stack",
    "Wanted": "random draws recorded for replay; options",
    "Judged": "LossOutput",
    "Journal": "metrics ring",
    "Watch": "health checks, monitor",
    "Beside": "ComparedReference",
    "Pace": "TimeToScore",
    "Point": "ResumePoint",
}

MODULES = {
    "anatomy": "structure",
    "beside": "references",
    "choose": "selection",
    "following": "tailing",
    "human": "formatting",
    "journal": "metrics_ring",
    "one_call": "fused_step",
    "pace": "time_to_score",
    "promises": "exactness",
    "warn": "caveats",
}
"""Names of files and folders."""

SINGLE_MODULES = ("events", "registry", "report", "videos", "watch")
"""Each the name of at most one module of the package, apart from the pages of the dashboard."""
PENDING_MODULES: dict[str, str] = {}

PHRASES = {
    r"^(Return|Yield) (what|who|whom|whose)\b": "an imperative that says what is computed",
}
"""Patterns of docstrings."""

STRINGS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
FOLDERS = ("atari_dqn", "tests", "docs", "benchmarks", "scripts", "runs")
SUFFIXES = {".py", ".md", ".toml", ".cpp", ".hpp", ".c"}


class Allowed(NamedTuple):
    """A word that may stay in the files of a glob, in lines that match a pattern."""

    files: str
    word: str
    line: str
    reason: str


ALLOWED = (
    Allowed("tests/test_vocabulary.py", "*", "", "the table itself"),
    Allowed("*.cpp", "lanes?", "", "lanes of SIMD registers"),
    Allowed("atari_dqn/spec/history.py", "*", "", "former names of keys, which old specs hold"),
    Allowed("tests/spec/test_history.py", "*", "", "former names of keys, which old specs hold"),
    Allowed("*", "lanes?", r"""["'`](lanes\.)?lanes?["'`]""", "key of checkpoints, column of train_log.csv"),
    Allowed("docs/results/*.toml", "lanes?", "", "former names of keys: specs as their runs recorded them"),
    Allowed("tests/spec/earlier_run.toml", "lanes?", "", "former names of keys: the spec of an earlier run"),
    Allowed("tests/metrics/test_csv_table.py", "lanes?", "step,lane", "column of train_log.csv"),
    Allowed("benchmarks/*.py", "lanes?", r"env\.lanes=", "former name of a key, which earlier versions read"),
    Allowed("*", "beside", "--beside", "option of benchmarks/versus.py"),
    Allowed("CHANGELOG.md", "lanes?", r"`[a-z.-]+lanes`", "former names of keys and options"),
    Allowed("*", "tell", r"\.tell\(\)", "position in a file: method of Python's files"),
    Allowed("*", "tell", r"(study|_begun)\.tell\(", "method of Optuna's studies"),
    Allowed("atari_dqn/scale/tuning/study.py", "journals?", "[Jj]ournal", "names of Optuna's storage"),
    Allowed("*", "alarms?", r"signal\.alarm\(", "function of Python's signal module"),
    Allowed("*", "cells?", r"""["']cells?["']""", "key of checkpoints, name of a file of diagnostic bundles"),
    Allowed("*", "ticks?", "tick(s|text|vals|label|font|er)|Ticker", "arguments of plotting libraries"),
)
PENDING_NAMES = ()

ANY_WORD = re.compile(rf"(?<![a-z])({'|'.join(WORDS)})(?![a-z])")
ANY_NAME = re.compile(rf"\b({'|'.join(CLASSES)})\b|(\.|\bdef)\s*({'|'.join(METHODS)})\b|(Return|Yield) wh")

PENDING: dict[str, str] = {}
"""Room → why it may still hold such words."""


@dataclass(frozen=True)
class Text:
    """A piece of a file that is searched."""

    line: int
    kind: str
    """`name`, `method` (defined or called on an object), `string`, `comment` or `page`."""
    text: str


def sources() -> dict[str, list[Path]]:
    """Group the files that are searched by room."""
    rooms: dict[str, list[Path]] = {}
    paths = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*")] + [*ROOT.glob("*.md")]
    for path in sorted(paths):
        if path.suffix in SUFFIXES and "__pycache__" not in path.parts:
            rooms.setdefault(room_of(path), []).append(path)
    return rooms


def room_of(path: Path) -> str:
    folder, *inner = path.relative_to(ROOT).parts
    if not inner:
        return "."
    if folder in ("atari_dqn", "tests"):
        return f"{folder}/{inner[0] if len(inner) > 1 else '.'}"
    return folder


def texts_of(path: Path, content: bytes) -> Iterator[Text]:
    """Yield names, strings and comments of Python code; the lines of other files."""
    if path.suffix != ".py":
        for number, line in enumerate(content.decode(errors="replace").splitlines(), start=1):
            yield Text(number, "page", line)
        return
    before = ""
    for token in tokenize.tokenize(BytesIO(content).readline):
        if token.type == tokenize.NAME:
            yield Text(token.start[0], "method" if before in ("def", ".") else "name", token.string)
        elif token.type == tokenize.COMMENT:
            yield Text(token.start[0], "comment", token.string)
        elif token.type in STRINGS:
            for offset, line in enumerate(token.string.splitlines()):
                yield Text(token.start[0] + offset, "string", line)
        before = token.string


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def words_in(text: Text) -> Iterator[tuple[str, str]]:
    """Yield each word of the tables in a text, with what to write."""
    if text.kind in ("name", "method") and text.text in CLASSES:
        yield text.text, CLASSES[text.text]
        return
    if text.kind == "method" and text.text in METHODS:
        yield text.text, METHODS[text.text]
        return
    searched = snake(text.text) if text.kind in ("name", "method") else text.text.lower()
    for pattern, instead in WORDS.items() if ANY_WORD.search(searched) else ():
        if re.search(rf"(?<![a-z])({pattern})(?![a-z])", searched):
            yield pattern, instead
    for pattern, instead in PHRASES.items():
        if text.kind == "string" and re.search(pattern, text.text.lstrip('"rf')):
            yield pattern, instead


def is_allowed(path: Path, line: str, word: str) -> bool:
    if word in SCOPES and not SCOPES[word].match(str(path.relative_to(ROOT))):
        return True
    return any(
        fnmatch(str(path.relative_to(ROOT)), allowed.files)
        and allowed.word in (word, "*")
        and re.search(allowed.line, line)
        for allowed in (*ALLOWED, *PENDING_NAMES)
    )


def findings(path: Path, content: bytes) -> list[str]:
    """List the words of a file that are not allowed, each with its place and what to write."""
    whole = content.decode(errors="replace")
    lines, relative = whole.splitlines(), path.relative_to(ROOT)
    may_have_words = ANY_WORD.search(snake(whole)) or ANY_NAME.search(whole)  # most files have none
    found = [
        f"{relative}:{text.line}: {word!r} in {text.text.strip()[:60]!r}; write {instead}"
        for text in (texts_of(path, content) if may_have_words else ())
        for word, instead in words_in(text)
        if not is_allowed(path, lines[text.line - 1], word)
    ]
    return found + [
        f"{relative}:1: name of a module; write {MODULES[part]}"
        for part in {path.stem, *path.parent.relative_to(ROOT).parts} & MODULES.keys()
    ]


ROOMS = sources()


@pytest.mark.parametrize("room", sorted(ROOMS.keys() - PENDING.keys()))
def test_the_words_are_those_of_the_field(room: str) -> None:
    found = [finding for path in ROOMS[room] for finding in findings(path, path.read_bytes())]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", sorted(set(SINGLE_MODULES) - PENDING_MODULES.keys()))
def test_a_name_is_that_of_one_module(name: str) -> None:
    package = [path for room in ROOMS for path in ROOMS[room] if path.is_relative_to(ROOT / "atari_dqn")]
    pages = ROOT / "atari_dqn" / "dashboard" / "pages"
    assert len([path for path in package if path.stem == name and path.parent != pages]) <= 1


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("lane = 3\n", ["lanes?"]),
        ("class LaneState: ...\n", ["lanes?"]),
        ("# the lane of a worker\n", ["lanes?"]),
        ("x = f'lane {3}'\n", ["lanes?"]),
        ("plane = replanes\n", []),
        ("def see(self): ...\n", ["see"]),
        ('"Return what was judged."\n', ["judg", "^(Return"]),
        ('"Compute the loss; see the paper."\n', []),
        ("x: Rounded = Rounded()\n", ["Rounded", "Rounded"]),
    ],
)
def test_words_are_found_in_names_comments_strings_and_docstrings(source: str, words: list[str]) -> None:
    found = findings(ROOT / "atari_dqn" / "cli" / "new.py", source.encode())
    assert len(found) == len(words)
    assert all(f": '{word}" in finding for finding, word in zip(found, words, strict=True))


def test_words_are_found_in_pages_with_their_line() -> None:
    (found,) = findings(ROOT / "docs" / "new.md", b"One.\nA lane each.\n")
    assert found.startswith("docs/new.md:2: 'lanes?' in 'A lane each.'; write environment")


def test_module_with_an_old_name_is_found() -> None:
    assert len(findings(ROOT / "atari_dqn" / "view" / "human.py", b"")) == 1
