"""Fuzz the readers of files for some minutes each, and print the result as JSON.

`--by atheris` is guided by coverage: it keeps inputs that reach new code. `--by chance` mutates the inputs in
tests/fuzz/corpus at random. A reader may return or raise one of the package's errors. Anything else is a
finding: another exception, more than --memory-mb MB of memory, or more than 20 s for one input. The inputs of
findings are written to the folder --findings.

    python benchmarks/fuzz.py segment --minutes 5 --out segment.json
    python benchmarks/fuzz.py all --minutes 30 --out fuzz.json      # one reader after another
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
CORPUS = TESTS / "fuzz/corpus"
sys.path[:0] = [str(TESTS), str(TESTS / "fuzz")]
READERS = (
    "manifest", "state", "catalog", "provenance", "spec", "csv", "jsonl", "segment", "weights", "array",
)  # fmt: skip
SECONDS_AN_INPUT = 20
MOST_FINDINGS = 10


@dataclass(kw_only=True)
class Outcome:
    """The result of fuzzing one reader."""

    reader: str
    by: str
    seconds: float = 0.0
    executions: int = 0
    coverage: int | None = None
    """Number of edges in the package's code that were reached; None without atheris."""
    findings: list[dict[str, str]] = field(default_factory=list)


def main() -> None:
    options = _options()
    if options.child:
        _follow_coverage(options)
        return
    from hardware import circumstances  # imports the package; a child imports it instrumented instead

    names = READERS if options.reader == "all" else (options.reader,)
    outcomes = [_outcome(name, options) for name in names]
    document = {"circumstances": circumstances(), "readers": [asdict(outcome) for outcome in outcomes]}
    text = json.dumps(document, indent=1)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")
    sys.exit(1 if any(outcome.findings for outcome in outcomes) else 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    has_atheris = importlib.util.find_spec("atheris") is not None
    parser.add_argument("reader", choices=[*READERS, "all"])
    parser.add_argument("--minutes", type=float, default=1.0, help="time for each reader")
    parser.add_argument("--by", choices=["atheris", "chance"], default="atheris" if has_atheris else "chance")
    parser.add_argument(
        "--memory-mb",
        type=int,
        default=690,
        help="largest memory of the process: 1.5 times what the corpus's spec needs (--plan)",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--findings", type=Path, default=Path("findings"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _outcome(name: str, options: argparse.Namespace) -> Outcome:
    options.findings.mkdir(parents=True, exist_ok=True)
    outcome = Outcome(reader=name, by=options.by)
    began = time.monotonic()
    if options.by == "atheris":
        _by_atheris(outcome, options)
    else:
        _by_chance(outcome, options)
    outcome.seconds = round(time.monotonic() - began, 1)
    print(f"{name}: {outcome.executions:,} executions, {len(outcome.findings)} findings", file=sys.stderr)
    return outcome


def _by_atheris(outcome: Outcome, options: argparse.Namespace) -> None:
    """Run libFuzzer until the time is over; start it again after each finding, at which it ends."""
    until = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        while (left := until - time.monotonic()) > 1 and len(outcome.findings) < MOST_FINDINGS:
            child = subprocess.run(
                [sys.executable, __file__, outcome.reader, "--child", folder, "--minutes", str(left / 60),
                 "--memory-mb", str(options.memory_mb), "--seed", str(options.seed + len(outcome.findings))],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            )  # fmt: skip
            _take_report(outcome, child.stdout)
            if child.returncode == 0:
                break
            _keep_findings(outcome, Path(folder), options.findings, child.stdout)


def _take_report(outcome: Outcome, report: str) -> None:
    executions = re.findall(r"^#(\d+)\s", report, re.MULTILINE)
    coverage = re.findall(r"cov: (\d+)", report)
    outcome.executions += max(map(int, executions), default=0)
    outcome.coverage = max([outcome.coverage or 0, *map(int, coverage)])


def _keep_findings(outcome: Outcome, folder: Path, findings: Path, report: str) -> None:
    found = sorted(folder.glob("crash-*")) + sorted(folder.glob("oom-*")) + sorted(folder.glob("timeout-*"))
    cause = " ".join(report.strip().splitlines()[-12:])[:600]
    for path in found:
        kept = findings / f"{outcome.reader}-{path.name}"
        kept.write_bytes(path.read_bytes())
        path.unlink()
        trace = re.findall(r"^\w*(?:Error|Exception|Iteration)\b.*$", report, re.MULTILINE)
        outcome.findings.append({"input": str(kept), "cause": trace[-1] if trace else cause})
    if not found:
        outcome.findings.append({"input": "", "cause": cause})


def _follow_coverage(options: argparse.Namespace) -> None:
    """Run libFuzzer in this process, which it ends at a finding or when the time is over."""
    import atheris

    with atheris.instrument_imports(include=["atari_dqn"]):
        from readers import make_reader

    folder = options.child
    seen = folder / f"seen_{options.reader}"
    seen.mkdir(exist_ok=True)
    limits = [
        f"-max_total_time={max(1, round(60 * options.minutes))}", f"-timeout={SECONDS_AN_INPUT}",
        f"-rss_limit_mb={options.memory_mb}", f"-seed={options.seed}", "-max_len=20000",
        f"-artifact_prefix={folder}/", "-print_final_stats=1",
    ]  # fmt: skip
    place = Path(tempfile.mkdtemp(dir=folder))
    reader = make_reader(options.reader, place)
    atheris.Setup([sys.argv[0], *limits, str(seen), str(CORPUS / options.reader)], reader)
    atheris.Fuzz()


class TooLongError(Exception):
    """Reading one input took too long."""


def _by_chance(outcome: Outcome, options: argparse.Namespace) -> None:
    from mutation import mutated
    from readers import make_reader

    def too_long(_: int, __: FrameType | None) -> Any:
        raise TooLongError

    signal.signal(signal.SIGALRM, too_long)
    kept = [path.read_bytes() for path in sorted((CORPUS / outcome.reader).iterdir())]
    until = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder:
        reader = make_reader(outcome.reader, Path(folder))
        for data in mutated(kept, options.seed):
            if time.monotonic() > until or len(outcome.findings) >= MOST_FINDINGS:
                return
            outcome.executions += 1
            signal.alarm(SECONDS_AN_INPUT)
            before = _peak_mb()
            try:
                reader(data)
            except Exception as error:
                _keep(outcome, options, data, f"{type(error).__name__}: {error}")
            finally:
                signal.alarm(0)
            if _peak_mb() > max(options.memory_mb, before):
                _keep(outcome, options, data, f"takes {_peak_mb()} MB")


def _keep(outcome: Outcome, options: argparse.Namespace, data: bytes, cause: str) -> None:
    path = options.findings / f"{outcome.reader}-{outcome.executions}"
    path.write_bytes(data)
    outcome.findings.append({"input": str(path), "cause": cause[:600]})


def _peak_mb() -> int:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
