"""A folder with three sound runs and every kind of broken one, for whatever reads runs."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent / "compare"))

from runs import make_run

GOOD = ("good one", "good two", "good three")
Break = Callable[[Path], None]


@dataclass(frozen=True)
class BrokenRuns:
    """The folder, and what is in it."""

    root: Path
    good: tuple[Path, ...]
    broken: dict[str, Path]
    """By kind."""

    @property
    def all(self) -> list[Path]:
        return [*self.good, *self.broken.values()]


def _text(name: str, text: str) -> Break:
    return lambda run: (run / name).write_text(text) and None


def _bytes(name: str, data: bytes) -> Break:
    return lambda run: (run / name).write_bytes(data) and None


def _replaced(name: str, old: str, new: str) -> Break:
    def change(run: Path) -> None:
        text = (run / name).read_text()
        assert old in text
        (run / name).write_text(text.replace(old, new))

    return change


def _appended(name: str, line: str) -> Break:
    def change(run: Path) -> None:
        with (run / name).open("a") as file:
            file.write(line + "\n")

    return change


def _recorded(**values: Any) -> Break:
    """Change entries of the provenance."""

    def change(run: Path) -> None:
        path = run / "provenance.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return change


def _cell(table: str, column: str, value: str) -> Break:
    """Put a value into the last row of a table."""

    def change(run: Path) -> None:
        path = run / f"{table}.csv"
        header, *_, last = rows = path.read_text().splitlines()
        cells = last.split(",")
        cells[header.split(",").index(column)] = value
        path.write_text("\n".join([*rows[:-1], ",".join(cells)]) + "\n")

    return change


def _pipe(name: str) -> Break:
    def change(run: Path) -> None:
        (run / name).unlink(missing_ok=True)
        os.mkfifo(run / name)

    return change


def _folder(name: str) -> Break:
    def change(run: Path) -> None:
        (run / name).unlink(missing_ok=True)
        (run / name).mkdir()

    return change


def _link(name: str, target: str) -> Break:
    def change(run: Path) -> None:
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(target)

    return change


def _missing(name: str) -> Break:
    return lambda run: (run / name).unlink()


def _sparse(name: str, size: int) -> Break:
    return lambda run: os.truncate(run / name, size)


def _line(**values: Any) -> str:
    return json.dumps({"kind": "note", "step": 1, "env_frames": 4, "message": "m", "data": {}} | values)


_DEEP = "[" * 100_000
_EVENT = "events.jsonl"

KINDS: dict[str, Break] = {
    "spec missing": _missing("spec.toml"),
    "spec empty": _text("spec.toml", ""),
    "spec no TOML": _text("spec.toml", "track = "),
    "spec not UTF-8": _bytes("spec.toml", b'game = "\xff"'),
    "spec NUL": _bytes("spec.toml", b"\0" * 64),
    "spec a pipe": _pipe("spec.toml"),
    "spec a folder": _folder("spec.toml"),
    "spec a circle of links": _link("spec.toml", "spec.toml"),
    "spec a link to nothing": _link("spec.toml", "nowhere"),
    "spec nested deeply": _text("spec.toml", f"a = {_DEEP}"),
    "spec of 1 TB": _sparse("spec.toml", 2**40),
    "spec seed a word": _replaced("spec.toml", "seed = ", 'seed = "one" #'),
    "spec seed of 400 digits": _replaced("spec.toml", "seed = ", f"seed = {'9' * 400}"),
    "spec game a list": _replaced("spec.toml", 'game = "pong"', 'game = ["pong"]'),
    "spec budget infinite": _replaced("spec.toml", "total_frames = ", "total_frames = inf #"),
    "spec discount a date": _replaced("spec.toml", "discount = ", "discount = 2020-01-01 #"),
    "provenance missing": _missing("provenance.json"),
    "provenance no JSON": _text("provenance.json", "{"),
    "provenance a list": _text("provenance.json", "[]"),
    "provenance nested deeply": _text("provenance.json", _DEEP),
    "provenance a pipe": _pipe("provenance.json"),
    "provenance a folder": _folder("provenance.json"),
    "deviations a number": _recorded(track={"label": "A", "deviations": 5}),
    "track a word": _recorded(track="A"),
    "git a string": _recorded(git="main"),
    "versions a number": _recorded(versions=5),
    "protocols a list": _recorded(protocols=[1]),
    "name half a letter": _recorded(name="\ud800"),
    "evaluations a pipe": _pipe("eval_log.csv"),
    "evaluations a folder": _folder("eval_log.csv"),
    "header damaged": _replaced("eval_log.csv", "mean_return", "mean_\x00eturn"),
    "header of another table": _text("update_log.csv", "a,b\n1,2\n"),
    "mean a word": _cell("eval_log", "mean_return", "good"),
    "step infinite": _cell("eval_log", "step", "Infinity"),
    "frames of 400 digits": _cell("eval_log", "env_frames", "9" * 400),
    "frames of 400 digits in updates": _cell("update_log", "env_frames", "9" * 400),
    "mean of 400 digits": _cell("eval_log", "mean_return", "9" * 400),
    "cell of 200,000 bytes": _cell("eval_log", "protocol", "x" * 200_000 + '"'),
    "row of NUL": _appended("update_log.csv", "\0" * 100),
    "updates a pipe": _pipe("update_log.csv"),
    "events a pipe": _pipe(_EVENT),
    "events a folder": _folder(_EVENT),
    "event no JSON": _appended(_EVENT, "{"),
    "event nested deeply": _appended(_EVENT, _DEEP),
    "event step infinite": _appended(_EVENT, '{"kind":"a","step":Infinity,"env_frames":1,"message":"m"}'),
    "event frames of 400 digits": _appended(_EVENT, _line(env_frames=0).replace("0", "9" * 400)),
    "event half a letter": _appended(_EVENT, _line(message="\ud800")),
    "event data a number": _appended(_EVENT, _line(data=5)),
    "gate of no state": _appended(
        _EVENT, _line(kind="gate", data={"gate": "disk", "state": "odd", "value": 1, "threshold": 1})
    ),
    "budget raised to a word": _appended(_EVENT, _line(kind="extended", data={"total_frames": "many"})),
}
"""What is broken → how."""
NAMES = {
    "name not UTF-8": os.fsdecode(b"caf\xe9"),
    "name with an escape": "red\x1b[31m\nred",
    "name with C1": "c1\x9b31m",
    "name reversed": "gpj\u202eexe",
    "name of markup": "[bold]<img src=x onerror=alert(1)>",
}
"""Sound runs under names that steer a terminal or a page: kind → name."""


def make_broken_runs(root: Path) -> BrokenRuns:
    """Make the folder. All are runs of one method, each with a seed of its own, and one mean return."""
    seeds = count(1)

    def make(name: str, mean_return: float) -> Path:
        run = make_run(root / name, [-20.0, mean_return], overrides=[f"seed={next(seeds)}"])
        (run / _EVENT).write_text(_line(kind="started", message="training") + "\n")
        return run

    good = tuple(make(name, 12.0) for name in GOOD)
    broken = {kind: make(kind, 1.0) for kind in KINDS}
    for kind, run in broken.items():
        KINDS[kind](run)
    named = {kind: make(name, 1.0) for kind, name in NAMES.items()}
    return BrokenRuns(root=root, good=good, broken=broken | named)
