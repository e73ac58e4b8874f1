"""Compare this version with an earlier one on this machine: its speed, in pairs, and its state digests.

    git worktree add ../earlier COMMIT && (cd ../earlier && python setup.py build_ext --inplace)
    python benchmarks/before_after.py speed --earlier ../earlier --pairs 10 --out FILE
    python benchmarks/before_after.py bits --earlier ../earlier --out FILE

`speed` runs `dqn bench` with both versions in turns, the order swapped from pair to pair, and reports the
ratio of frames/s (this version over the earlier one) of each pair. `bits` trains each family of agents on the
toy game with both versions, without the project's compiled kernels, and compares the state digests of the
last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hardware import circumstances
from new_shell import environment_of_a_new_shell

HERE = Path(__file__).parents[1]
PROGRAM = "import sys; sys.path.insert(0, {root!r}); from atari_dqn.cli import main; main()"


@dataclass(frozen=True)
class Case:
    """A spec of the earlier version's `runs/`, which both versions read, with overrides."""

    name: str
    spec: str
    overrides: tuple[str, ...] = ()


# Keys by their first names, which every version reads.
SPEED = (
    Case("Track A, fp32, 1 environment", "pong_trackA.toml"),
    Case("Track A, fp32, 8 environments", "pong_trackA.toml", ("env.lanes=8",)),
    Case("Track B", "pong_trackB.toml"),
    Case("Rainbow", "pong_rainbow.toml"),
    Case("DER", "atari100k/der/pong.toml"),
    Case("pong_quick", "pong_quick.toml"),
    Case("IQN", "pong_iqn.toml"),
)
SMALL = (
    "game=catch", "env.kind=catch", "env.screen_size_pixels=36", "env.max_episode_frames=80",
    "exploration.epsilon_decay_frames=1000", "replay.capacity_steps=150", "replay.prefill_steps=64",
    "learner.batch_size=8", "training.total_frames=1200", "evaluation.max_episode_frames=120",
    "evaluation.light_period_frames=1200", "evaluation.light_episodes=1",
    "evaluation.full_period_frames=1200", "evaluation.full_episodes=1", "logging.update_period_steps=50",
    "logging.replay_period_steps=100", "system.evaluation_video=false", "learner.precision=fp32",
)  # fmt: skip
BITS = tuple(
    Case(name, f"{spec}.toml", SMALL)
    for name, spec in {
        "DQN": "pong_trackA", "Track B": "pong_trackB", "C51": "pong_c51", "QR-DQN": "pong_qr_dqn",
        "IQN": "pong_iqn", "M-IQN": "pong_m_iqn", "Rainbow": "pong_rainbow", "DER": "atari100k/der/pong",
    }.items()
)  # fmt: skip


def dqn(root: Path, *words: str) -> str:
    """Run `dqn` of the package under `root` and return its standard output."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(root=str(root)), *words],
        cwd=root, env=environment_of_a_new_shell(), check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip


def options(case: Case) -> list[str]:
    return [word for override in case.overrides for word in ("--set", override)]


def frames_per_second(root: Path, spec: Path, case: Case, seconds: int) -> float:
    found = json.loads(dqn(root, "bench", str(spec), "--seconds", str(seconds), "--json", *options(case)))
    return float(found["rate"]["frames_per_second"])


def speed(earlier: Path, cases: Sequence[Case], pairs: int, seconds: int) -> Iterator[dict[str, Any]]:
    """Measure the cases in pairs; the ratio of a pair is this version's frames/s over the earlier one's.

    Yield what has been found after each round of all cases.
    """
    rates: dict[str, list[dict[str, float]]] = {case.name: [] for case in cases}
    for pair in range(pairs):
        for case in cases:
            roots = [HERE, earlier] if pair % 2 else [earlier, HERE]
            measured = {
                root: frames_per_second(root, earlier / "runs" / case.spec, case, seconds) for root in roots
            }
            rates[case.name].append({"here": measured[HERE], "earlier": measured[earlier]})
            print(f"{case.name}: {measured[earlier]:,.1f} → {measured[HERE]:,.1f}", flush=True)
        ratios = {name: [each["here"] / each["earlier"] for each in found] for name, found in rates.items()}
        medians = {name: statistics.median(values) for name, values in ratios.items()}
        mean = statistics.mean(medians.values())
        yield {
            "seconds": seconds,
            "median_ratio": medians,
            "mean_of_medians": mean,
            "ratios": ratios,
            "frames_per_second": rates,
        }


def without_kernels(root: Path, folder: Path) -> Path:
    """Copy a version without its compiled kernels."""
    ignored = shutil.ignore_patterns("*.so", ".git", "docs", "__pycache__")
    return Path(shutil.copytree(root, folder, ignore=ignored))


def digest_of(root: Path, spec: Path, case: Case, run: Path) -> str:
    """Train a case and return the state digest that its last checkpoint recorded."""
    dqn(root, "train", str(spec), "--run-dir", str(run), "--plain", *options(case))
    manifest = json.loads((run / "checkpoints/latest/manifest.json").read_text())
    return str(manifest["state_digest"])


def bits(earlier: Path) -> dict[str, Any]:
    """Compare the state digests of both versions, family by family."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        versions = {
            "earlier": without_kernels(earlier, folder / "a"),
            "here": without_kernels(HERE, folder / "b"),
        }
        for place, case in enumerate(BITS):
            spec = earlier / "runs" / case.spec
            digests = {
                version: digest_of(root, spec, case, folder / f"{version}{place}")
                for version, root in versions.items()
            }
            found[case.name] = {**digests, "equal": digests["earlier"] == digests["here"]}
            print(f"{case.name}: {'equal' if found[case.name]['equal'] else 'different'}", flush=True)
    return found


def chosen_cases(specs: Sequence[str], games: Sequence[str] | None) -> list[Case]:
    if not games:
        return [Case(spec, f"{spec}.toml") for spec in specs]
    return [Case(f"{spec}, {game}", f"{spec}.toml", (f"game={game}",)) for spec in specs for game in games]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["speed", "bits"])
    parser.add_argument("--earlier", type=Path, required=True, help="a checkout of the earlier version")
    parser.add_argument(
        "--specs", nargs="+", metavar="NAME", help="measure these, which both versions have in runs/"
    )
    parser.add_argument(
        "--games", nargs="+", metavar="GAME", help="with --specs: each on each of these games"
    )
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=10, help="of each `dqn bench`")
    parser.add_argument("--out", type=Path, required=True, help="JSON file to write")
    chosen = parser.parse_args()
    if chosen.specs and chosen.what == "bits":
        parser.error("--specs is for speed")
    if chosen.games and not chosen.specs:
        parser.error("--games needs --specs")
    earlier = chosen.earlier.resolve()
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=earlier, check=True, capture_output=True, text=True
    ).stdout.strip()
    cases = chosen_cases(chosen.specs, chosen.games) if chosen.specs else SPEED
    results = (
        speed(earlier, cases, chosen.pairs, chosen.seconds) if chosen.what == "speed" else [bits(earlier)]
    )
    for result in results:
        document = {"circumstances": circumstances(), "earlier": commit, chosen.what: result}
        chosen.out.write_text(json.dumps(document, indent=1) + "\n")
    if chosen.what == "bits":
        sys.exit(not all(each["equal"] for each in result.values()))


if __name__ == "__main__":
    main()
