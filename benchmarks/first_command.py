"""Minutes from the README's first command until the agent wins, one seed after another.

    python benchmarks/first_command.py --runs FOLDER --out FILE

Each seed is a run of `dqn train` in FOLDER. It is stopped as soon as the mean of its last 20 training games
reaches --until, or after --most-minutes. The minutes are those from the command to the run's first event, and
the elapsed time that the run's tables give for the game that reached the score.

A measurement that was killed goes on by the same command: a run whose tables have the answer is left as it
is, another is resumed. The time between does not count, nor does the work that the kill lost.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from hardware import circumstances
from new_shell import environment_of_a_new_shell

DQN = (sys.executable, "-m", "atari_dqn")
GAMES = 20
POLL_SECONDS = 2.0
STOPPED = (0, 128 + signal.SIGTERM, 128 + signal.SIGINT, -signal.SIGTERM)
"""Exit codes of a training that ended or was stopped, the last one before it had begun to handle signals."""


def rows(run: Path, table: str) -> list[dict[str, str]]:
    """Return the complete rows of a run's table; none where there is no table yet."""
    path = run / f"{table}.csv"
    if not path.exists():
        return []
    complete, _, _ = path.read_text().rpartition("\n")  # a row may be half written
    return list(csv.DictReader(complete.splitlines()))


def first_reaching(returns: Sequence[float], until: float) -> int | None:
    """Return the index of the first game at which the mean of the last `GAMES` is at least `until`."""
    means = (statistics.fmean(returns[end - GAMES : end]) for end in range(GAMES, len(returns) + 1))
    return next((index + GAMES - 1 for index, mean in enumerate(means) if mean >= until), None)


def outcome(run: Path, *, until: float, most_minutes: float) -> dict[str, Any] | None:
    """Compute the answer from a run's tables; None while they do not have it.

    A game has the elapsed time of the report that follows it.
    """
    games, reports = rows(run, "train_log"), rows(run, "throughput_log")
    if not reports:
        return None
    times = {int(row["env_frames"]): startup_seconds(run) + float(row["elapsed_seconds"]) for row in reports}
    spent = max(times.values())
    is_over = spent >= 60 * most_minutes or (run / "summary.json").exists()
    index = first_reaching([float(game["episode_return"]) for game in games], until)
    frames = math.inf if index is None else int(games[index]["env_frames"])
    seconds = next((times[reported] for reported in times if reported >= frames), math.inf)
    has_reached = seconds <= 60 * most_minutes
    if not has_reached and not is_over:
        return None
    return {
        "reached": has_reached,
        "minutes": round(seconds / 60, 2) if has_reached else None,
        "env_frames": frames if has_reached else None,
        "trained_minutes": round(spent / 60, 2),
        "trained_frames": max(times),
        "startup_seconds": round(startup_seconds(run), 1),
        **conditions_of(run),
    }


def startup_seconds(run: Path) -> float:
    """Return the seconds from the command to the run's first event."""
    began: float = json.loads(command_file(run).read_text())["began"]
    return datetime.fromisoformat(events(run)[0]["timestamp"]).timestamp() - began


def events(run: Path) -> list[dict[str, Any]]:
    """Return the run's events, of complete lines."""
    path = run / "events.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.rpartition("\n")[0].splitlines()]


def conditions_of(run: Path) -> dict[str, Any]:
    """Read how the run was computed, and how often it was resumed and reported a busy machine."""
    recorded = json.loads((run / "provenance.json").read_text())
    kinds = [event["kind"] for event in events(run)]
    return {
        **{key: recorded.get(key) for key in ("auto", "kernels", "torch_threads", "openmp")},
        "resumes": kinds.count("resumed"),
        "notices_of_a_busy_machine": kinds.count("busy machine"),
    }


def command_file(run: Path) -> Path:
    """Return the place, next to a run, where its command and the time of its start are kept."""
    return run.with_name(f"{run.name}.command.json")


def command(run: Path, words: Sequence[str]) -> list[str]:
    """Return the command that begins a run, or resumes it, and keep the words that began it.

    Refuse to go on with a run that other words began.
    """
    kept = command_file(run)
    if kept.exists() and (began_with := json.loads(kept.read_text())["words"]) != list(words):
        raise SystemExit(f"{run} was begun with {' '.join(began_with)}; name another folder with --runs")
    if (run / "spec.toml").exists():
        return ["resume", str(run), "--plain"]
    kept.write_text(json.dumps({"words": list(words), "began": time.time()}) + "\n")
    return [*words, "--run-dir", str(run), "--plain"]


@contextmanager
def training(words: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run `dqn` during the block, and at its end stop it by a signal that lets it save."""
    clean = environment_of_a_new_shell()
    with log.open("ab") as output:
        process = subprocess.Popen([*DQN, *words], stdout=output, stderr=subprocess.STDOUT, env=clean)
        try:
            yield process
        finally:
            process.terminate()
            code = process.wait()
    if code not in STOPPED:
        raise SystemExit(f"dqn {' '.join(words)} ended with {code}: see {log}")


def measure(run: Path, words: Sequence[str], *, until: float, most_minutes: float) -> dict[str, Any]:
    """Train, if the run's tables do not answer yet, until they do."""
    next_words, log = command(run, words), run.with_name(f"{run.name}.log")
    found = outcome(run, until=until, most_minutes=most_minutes)
    if found is None:
        with training(next_words, log) as process:
            while found is None and process.poll() is None:
                time.sleep(POLL_SECONDS)
                found = outcome(run, until=until, most_minutes=most_minutes)
    found = found or outcome(run, until=until, most_minutes=most_minutes)
    if found is None:
        raise SystemExit(f"{run} was interrupted; the same command goes on: see {log}")
    return found


def result(found: dict[int, dict[str, Any]], options: argparse.Namespace) -> dict[str, Any]:
    """Return every seed's answer, how many reached the score, and the median minutes if half of them did."""
    minutes = [math.inf if each["minutes"] is None else each["minutes"] for each in found.values()]
    median = statistics.median(minutes)
    return {
        **circumstances(),
        "settings": settings(options),
        "seeds": found,
        "reached": f"{sum(each['reached'] for each in found.values())} of {len(found)}",
        "median_minutes": median if math.isfinite(median) else None,
    }


def settings(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "spec": Path(options.spec).name,
        "set": options.set,
        "seeds": options.seeds,
        "until": options.until,
        "games": GAMES,
        "most_minutes": options.most_minutes,
    }


def parsed(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; a result of other settings is not replaced."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, required=True, help="folder for the runs; keep it to go on")
    parser.add_argument("--out", type=Path, required=True, help="JSON file, written after every seed")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--spec", default="pong_quick")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as `dqn train`")
    parser.add_argument("--until", type=float, default=12.0, metavar="SCORE")
    parser.add_argument("--most-minutes", type=float, default=60.0, metavar="M", help="of each seed")
    options = parser.parse_args(words)
    if options.out.exists() and json.loads(options.out.read_text()).get("settings") != settings(options):
        parser.error(f"--out {options.out}: holds a result of other settings; name another file")
    return options


def main() -> None:
    options = parsed()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(STOPPED[1]))  # so that the training is stopped too
    options.runs.mkdir(parents=True, exist_ok=True)
    found: dict[int, dict[str, Any]] = {}
    for seed in options.seeds:
        overrides = [*options.set, f"seed={seed}"]
        words = ["train", options.spec, *(word for each in overrides for word in ("--set", each))]
        run = options.runs / f"seed{seed}"
        found[seed] = measure(run, words, until=options.until, most_minutes=options.most_minutes)
        options.out.write_text(json.dumps(result(found, options), indent=2) + "\n")
        print(f"seed {seed}: {json.dumps(found[seed])}", flush=True)


if __name__ == "__main__":
    main()
