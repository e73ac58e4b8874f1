"""Systems that train in turns, each in a process of its own: what every comparison of speed here shares.

A module that compares says which rows of a table there are, each with its systems and the ratios that matter
(`Match`); `run` is its command.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Protocol

import instruction_sets
from atari_dqn.machine.contention import contention, read_core_times
from atari_dqn.machine.hardware import cpu_flags
from busy import busy_programs
from contender import SETTINGS, Contender, check, measure
from hardware import circumstances


@dataclass(frozen=True, kw_only=True)
class Match:
    """Who takes turns, by name; and the pairs of names whose ratio, first over second, is wanted."""

    contenders: Mapping[str, Contender]
    ratios: Sequence[tuple[str, str]]
    notes: Sequence[str] = ()
    """What a reader of the ratios must know."""


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """What is the same for every contender of a round."""

    seconds: float
    threads: int
    isa: str = "native"
    busy: Sequence[int] = (0,)
    """Numbers of busy programs; each contender is measured with each of them running, one after another."""


class Comparison(Protocol):
    """What a module that compares has."""

    ROWS: Mapping[str, Callable[[argparse.Namespace], Match]]
    """The rows of its table; each prepares its contenders' environments and lists them."""

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add what only it needs."""
        ...


def take_turns(
    match: Match,
    conditions: Conditions,
    *,
    rounds: int,
    save: Callable[[dict[str, Any]], None] = lambda _found: None,
) -> dict[str, Any]:
    """Return each round's figures, their medians, and the median over rounds of every ratio.

    `save` gets what there is after each round.
    """
    turns = list(product(match.contenders, conditions.busy))
    found: dict[str, list[dict[str, Any]]] = {label(*turn): [] for turn in turns}
    for _ in range(rounds):
        for name, programs in turns:
            result = turn(match.contenders[name], programs, conditions)
            found[label(name, programs)].append(result)
            print(line(label(name, programs), result), file=sys.stderr, flush=True)
        save(summary(match, conditions.busy, found))
    return summary(match, conditions.busy, found)


def turn(contender: Contender, programs: int, conditions: Conditions) -> dict[str, Any]:
    """Measure a contender next to busy programs; `others_cores`: the cores that yet other programs used."""
    before = read_core_times()
    with busy_programs(programs):
        result = measure(
            contender, seconds=conditions.seconds, threads=conditions.threads, isa=conditions.isa
        )
    others = contention(before, read_core_times())
    return {**result, "others_cores": others and round(others.others_cores, 2)}


def line(name: str, result: Mapping[str, Any]) -> str:
    """Return a measurement as one line, with what may have disturbed it."""
    others = result["others_cores"]
    disturbed = f", while other programs used {others} cores" if others else ""
    return f"{name}: {result['frames_per_second']:,.0f} frames/s{disturbed}"


def label(name: str, programs: int) -> str:
    """Return the name of a contender next to a number of busy programs."""
    return f"{name}, {programs} busy" if programs else name


def summary(match: Match, busy: Sequence[int], found: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Compute medians, and every ratio of two figures of one round; where there are both, busy over quiet."""
    speeds = {name: [each["frames_per_second"] for each in found[name]] for name in found}
    pairs = [(label(a, programs), label(b, programs)) for programs in busy for a, b in match.ratios]
    if 0 in busy:
        pairs += [(label(name, programs), name) for name in match.contenders for programs in busy if programs]
    ratios = {f"{a} / {b}": [x / y for x, y in zip(speeds[a], speeds[b], strict=True)] for a, b in pairs}
    others = [each["others_cores"] for results in found.values() for each in results]
    return {
        "median_frames_per_second": {name: statistics.median(speeds[name]) for name in speeds},
        "median_ratio": {name: statistics.median(each) for name, each in ratios.items()},
        "most_others_cores": max((each for each in others if each is not None), default=None),
        "ratios": ratios,
        "rounds": dict(found),
    }


def united(matches: Sequence[Match]) -> Match:
    """Return all in one, each contender once."""
    return Match(
        contenders={name: each for match in matches for name, each in match.contenders.items()},
        ratios=list(dict.fromkeys(pair for match in matches for pair in match.ratios)),
        notes=list(dict.fromkeys(note for match in matches for note in match.notes)),
    )


def chosen_rows(comparisons: Sequence[Comparison], options: argparse.Namespace) -> Match:
    """Return the rows that the options choose, all without a choice, in one match."""
    match = united(
        [
            row(options)
            for comparison in comparisons
            for name, row in comparison.ROWS.items()
            if not options.rows or name in options.rows
        ]
    )
    for note in match.notes:
        print(note, file=sys.stderr)
    return match


def at_least(smallest: int) -> Callable[[str], int]:
    """Return the type of an option that is a whole number of at least `smallest`."""

    def number(text: str) -> int:
        if (value := int(text)) < smallest:
            raise argparse.ArgumentTypeError(f"must be at least {smallest}, got {value}")
        return value

    return number


def options_parser(description: str | None, comparisons: Sequence[Comparison]) -> argparse.ArgumentParser:
    """Return the parser of a comparison's command."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    parser.add_argument(
        "--venv",
        type=Path,
        default=Path(tempfile.gettempdir()) / "benchmark_venvs",
        help="folder of the other systems' environments, one each; made where missing",
    )
    rows = list(dict.fromkeys(name for comparison in comparisons for name in comparison.ROWS))
    parser.add_argument("--rows", nargs="+", choices=rows, metavar="ROW", help=", ".join(rows))
    parser.add_argument("--rounds", type=at_least(1), default=5)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each measurement")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of torch, in all")
    parser.add_argument(
        "--isa",
        choices=instruction_sets.ISAS,
        default="native",
        help="hold every system's libraries to this instruction set, and check that they keep to it",
    )
    parser.add_argument(
        "--beside",
        dest="busy",
        type=at_least(0),
        nargs="+",
        default=[0],
        metavar="N",
        help="busy programs that run meanwhile; `0 1` takes turns without and with one, for the ratio",
    )
    for comparison in comparisons:
        comparison.add_options(parser)
    return parser


def run(description: str | None, comparisons: Sequence[Comparison]) -> None:
    """Read the command line, measure, and write after each round, and print at the end, what was found."""
    parser = options_parser(description, comparisons)
    options = parser.parse_args()
    if options.out.exists():
        parser.error(f"--out {options.out}: there is such a file; name another")
    if missing := instruction_sets.lacking(options.isa, cpu_flags()):
        parser.error(f"--isa {options.isa}: this processor does not report {', '.join(missing)}")
    match = chosen_rows(comparisons, options)
    conditions = Conditions(
        seconds=options.seconds, threads=options.threads, isa=options.isa, busy=sorted(set(options.busy))
    )
    reports = {
        name: check(name, each, threads=options.threads, isa=options.isa)
        for name, each in match.contenders.items()
    }
    head = {
        "settings": settings(conditions, match, options),
        "instruction_sets": {
            "held_to": options.isa,
            "variables": instruction_sets.VARIABLES[options.isa],
            "reports": reports,
        },
    }

    def save(found: dict[str, Any]) -> None:
        options.out.write_text(json.dumps({**circumstances(), **head, **found}, indent=2) + "\n")

    turns = take_turns(match, conditions, rounds=options.rounds, save=save)
    print(json.dumps({name: turns[name] for name in turns if name.startswith("median")}, indent=2))


def settings(conditions: Conditions, match: Match, options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings as plain data, those of single contenders included."""
    return {
        **SETTINGS,
        "seconds": conditions.seconds,
        "threads": conditions.threads,
        "rounds": options.rounds,
        "rows": options.rows,
        "busy_programs": list(conditions.busy),
        "own_settings": {
            name: own
            for name, each in match.contenders.items()
            if (own := {key: each.options[key] for key in SETTINGS if key in each.options})
        },
        "notes": list(match.notes),
    }
