"""How soon the dashboard shows: 50 runs of 10,000 rows each, from the request to the drawn page.

Needs Chromium and the extra `dashboard`. A fresh browser opens one page after another (`first_seconds`: the
first of them alone finds an empty cache), then all again (`again_seconds`).
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from atari_dqn.dashboard.layout import PAGES
from atari_dqn.run.directory import RunDirectory
from atari_dqn.spec.digest import spec_digest
from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.render import resolved_toml
from atari_dqn.telemetry.columns import TABLES
from hardware import circumstances

import numpy as np
import polars as pl
from playwright.sync_api import Page, sync_playwright

SPEC = Path(__file__).parents[1] / "runs" / "pong_trackA.toml"
EMPTY = ("/sweeps", "/videos")
"""Pages that have nothing to show of these runs."""
MEASURED = {address.strip("/") or "runs": address for address in PAGES if address not in EMPTY}
SHOWN = {"runs": ".overview", "diff": ".diff", "live": ".live-run"}
PLOT = ".main-svg"
WORDS = {"eval_type": "full", "end_reason": "game_over", "protocol": "0" * 12}
SMALL_TABLES = {"eval_log": 200, "replay_log": 1000}


def make_runs(root: Path, *, runs: int, rows: int) -> None:
    for seed in range(runs):
        resolved = load_spec(SPEC, [f"seed={seed}"])
        provenance = {"name": "pong_trackA", "track": {"label": "A", "deviations": []}, "protocols": {}}
        run = RunDirectory.create(
            root / f"run_{seed}", resolved_toml(resolved), spec_digest(resolved.spec), provenance
        )
        for table in TABLES:
            write(run.tables / f"{table}.csv", table, SMALL_TABLES.get(table, rows), seed)


def write(path: Path, table: str, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps = 1000 * np.arange(1, rows + 1)
    place = {"step": steps, "env_frames": 4 * steps}
    columns = {
        column.name: [WORDS[column.name]] * rows
        if column.name in WORDS
        else place.get(column.name, rng.normal(size=rows).cumsum())
        for column in TABLES[table]
    }
    whole: dict[str, Any] = {name: np.arange(rows) for name in ("episodes", "frame_caps") if name in columns}
    if table == "eval_log":
        whole["eval_type"] = ["full"] * (rows - 1) + ["final"]
    pl.DataFrame(columns | whole).write_csv(path)


def seconds_to_show(page: Page, address: str, name: str) -> float:
    began = time.perf_counter()
    page.goto(address.rstrip("/") + MEASURED[name])
    page.wait_for_selector(SHOWN.get(name, PLOT))
    return round(time.perf_counter() - began, 3)


def measure(root: Path) -> dict[str, dict[str, float]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    code = "from atari_dqn.cli import main; main()"
    command = [sys.executable, "-c", code, "dashboard", str(root), "--port", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        address = server.stdout.readline().split()[0]
        wait_for(port)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
            )
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            cold = {name: seconds_to_show(page, address, name) for name in MEASURED}
            warm = {name: seconds_to_show(page, address, name) for name in MEASURED}
            browser.close()
    finally:
        server.terminate()
        server.wait()
    return {"first_seconds": cold, "again_seconds": warm}


def wait_for(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make_runs(Path(folder), runs=arguments.runs, rows=arguments.rows)
        measured = measure(Path(folder))
    load = {"load_average": os.getloadavg()[0]}  # other programs at the same time make every page slower
    result = {**circumstances(), **load, "runs": arguments.runs, "rows": arguments.rows, **measured}
    text = json.dumps(result, indent=2)
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
