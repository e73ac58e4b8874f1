"""What pages of results are checked with: the files that they cite, and the figures of their rows."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
RESULTS = DOCS / "results"
NUMBER = re.compile(r"(?<![\w.])−?\d+(?:,\d{3})*(?:\.\d+)?(?![\d]|[A-Za-z])")


def kept(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())


def text_of(page: str) -> str:
    """Read a page as one line."""
    return (DOCS / page).read_text(encoding="utf-8").replace("\n", " ")


def cells(page: str, after: str, label: str) -> str:
    """Read the cells behind the label of the first row that has it, after a text that is there once."""
    text = (DOCS / page).read_text(encoding="utf-8")
    assert text.count(after) == 1, f"{page} has {after!r} not once"
    rest = text.partition(after)[2]
    rows = [line for line in rest.splitlines() if line.startswith(f"| {label} |")]
    assert rows, f"{page}, after {after!r}: no row {label!r}"
    return rows[0].removeprefix(f"| {label} |")


def figures(text: str) -> list[str]:
    """List the numbers in a text, but not those that belong to a word."""
    return NUMBER.findall(text)


def agrees(figure: str, value: float) -> bool:
    """Return whether a printed figure is a value rounded to its digits; zeros at its end may be rounding."""
    digits = figure.replace(",", "").replace("−", "-")
    whole, _, decimals = digits.partition(".")
    zeros = len(whole) - len(whole.rstrip("0")) if not decimals and whole.strip("-0") else 0
    unit = 10.0 ** (zeros - len(decimals))
    return abs(float(digits) - value) <= 0.5001 * unit


def disagreements(text: str, values: Sequence[float]) -> list[str]:
    """List the figures of a text that are not the values, in their order."""
    found = figures(text)
    if len(found) != len(values):
        return [f"{len(found)} figures in {text!r}, expected {len(values)}"]
    return [f"{a} is not {b}" for a, b in zip(found, values, strict=True) if not agrees(a, b)]
