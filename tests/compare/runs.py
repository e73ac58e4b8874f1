"""Run directories with tables of known numbers, written by the code that writes real ones."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from atari_dqn.run.directory import RunDirectory
from atari_dqn.spec.digest import spec_digest
from atari_dqn.spec.loader import ResolvedSpec, load_spec
from atari_dqn.spec.protocol import Protocol, evaluation_protocol
from atari_dqn.spec.render import resolved_toml
from atari_dqn.telemetry.columns import TABLES, column_names
from atari_dqn.telemetry.csv_table import CsvTable

RUNS = Path(__file__).parents[2] / "runs"
PERIOD_FRAMES = 500_000
WORDS = {"end_reason": "game_over"}


def make_run(
    path: Path,
    returns: Sequence[float],
    *,
    spec: str = "pong_trackA.toml",
    overrides: Sequence[str] = (),
    period_frames: int = PERIOD_FRAMES,
    finished: bool = True,
    episodes: int = 30,
    ale_version: str = "0.12.1",
    frame_caps: int | Sequence[int] = 0,
    late_frames: int = 0,
    training_return: float | Sequence[float] = -20.0,
    versions: dict[str, str] | None = None,
    auto: dict[str, str | int] | None = None,
) -> Path:
    """Make a run evaluated every `period_frames` with these mean returns; one hour passes in each period.

    `frame_caps`: games that the cap cut in every evaluation, or in each. `late_frames`: by how much
    evaluations come after they are due. `training_return`: of every training game, or of each, one a period.
    `auto`: keys that the machine chose.
    """
    resolved = load_spec(RUNS / spec, ["learner.threads=2", "system.workers=0", *overrides])
    kinds = ["full"] * len(returns)
    if finished:
        kinds[-1] = "final"
    caps = [frame_caps] * len(returns) if isinstance(frame_caps, int) else frame_caps
    protocols = {kind: protocol_of(resolved, kind, episodes, ale_version) for kind in ("full", "final")}
    run = RunDirectory.create(
        path,
        resolved_toml(resolved),
        spec_digest(resolved.spec),
        _provenance(resolved, protocols, versions) | {"auto": auto or {}},
    )
    rows = [
        {
            "env_frames": (place + 1) * period_frames + late_frames,
            "eval_type": kind,
            "episodes": episodes,
            "mean_return": value,
            "frame_caps": cut,
            "protocol": protocols[kind].digest(),
        }
        for place, (value, kind, cut) in enumerate(zip(returns, kinds, caps, strict=True))
    ]
    write(run, "eval_log", rows)
    frames = [row["env_frames"] for row in rows]
    trained = [training_return] * len(frames) if isinstance(training_return, float) else training_return
    updates = zip(frames, trained, strict=True)
    write(run, "update_log", [{"env_frames": at, "rolling_return": each} for at, each in updates])
    games = zip(frames, trained, strict=True)
    write(run, "train_log", [{"env_frames": at, "episode_return": each} for at, each in games])
    times = [{"env_frames": each, "elapsed_seconds": 3600.0 * each / period_frames} for each in frames]
    write(run, "throughput_log", times)
    return path


def protocol_of(resolved: ResolvedSpec, kind: str, episodes: int, ale_version: str) -> Protocol:
    checkpoint = "last" if kind == "final" else "current"
    return evaluation_protocol(
        resolved.spec, episodes=episodes, checkpoint=checkpoint, ale_version=ale_version, rom_md5="0" * 32
    )


def write(run: RunDirectory, table: str, rows: Sequence[dict[str, Any]]) -> None:
    with closing(CsvTable(run.tables / f"{table}.csv", column_names(table))) as file:
        for row in rows:
            file.append({column.name: WORDS.get(column.name, 0) for column in TABLES[table]} | row)


def _provenance(
    resolved: ResolvedSpec, protocols: dict[str, Protocol], versions: dict[str, str] | None
) -> dict[str, Any]:
    return {
        "name": resolved.name,
        "track": {"label": resolved.track_label, "deviations": list(resolved.deviations)},
        "protocols": {protocol.digest(): asdict(protocol) for protocol in protocols.values()},
        "versions": versions or {"atari_dqn": "0.1.0", "torch": "2.13.0"},
        "git": None,
    }
