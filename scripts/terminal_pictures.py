"""Draw what the terminal shows, from the kept run of pong_quick: python scripts/terminal_pictures.py FOLDER

`live_view.png` is the live view at the run's 896,000th frame, `compare.png` what `dqn compare` prints. Needs
the extra `dev` and a Chromium on the path, which draws them.
"""

from __future__ import annotations

import io
import math
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console

from atari_dqn.compare.comparison import compare
from atari_dqn.compare.reference.agents import subject_of
from atari_dqn.run.tailing.run_events import RunEvents
from atari_dqn.spec.loader import load_spec
from atari_dqn.telemetry.columns import column_names
from atari_dqn.telemetry.events import Event, Row
from atari_dqn.view.comparison_tables import comparison_view
from atari_dqn.view.live import LiveView

ROOT = Path(__file__).parents[1]
SPEC, RUN = ROOT / "runs" / "pong_quick.toml", ROOT / "docs" / "results" / "pong_quick"
UNTIL_FRAMES = 896_000
COLUMNS, LINES = 100, 26


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, record=True, width=COLUMNS, height=LINES)


def events() -> Iterator[Event]:
    """Yield the run's events up to the picture's moment; a column that came later is empty."""
    for event in RunEvents(RUN).new() or []:
        if isinstance(event, Row):
            empty = dict.fromkeys(column_names(event.table), math.nan)
            if float(event.values["env_frames"]) <= UNTIL_FRAMES:
                yield replace(event, values=empty | dict(event.values))
        elif getattr(event, "env_frames", UNTIL_FRAMES) <= UNTIL_FRAMES:
            yield event


def draw_live_view(path: Path) -> None:
    resolved, console = load_spec(SPEC), terminal()
    view = LiveView(
        title="pong_quick  track A*  seed 1",
        total_frames=resolved.spec.training.total_frames,
        subject=subject_of(resolved.spec),
        console=Console(file=io.StringIO()),
    )
    for event in events():
        view.handle(event)
    console.print(view.draw(), height=LINES)
    view.close()
    save(console, path, title="dqn train runs/pong_quick.toml")


def draw_comparison(path: Path) -> None:
    console = terminal()
    console.print(comparison_view(compare([RUN], human_table="atari57")))
    save(console, path, title="dqn compare outputs/pong_quick_seed1")


def save(console: Console, path: Path, *, title: str) -> None:
    """Draw what was printed, in a font of this machine: the ones that rich names lie elsewhere."""
    svg = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title=title), flags=re.DOTALL)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1100, "height": 900})
        page.set_content(svg)
        page.locator("svg").first.screenshot(path=str(path))
        browser.close()


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    draw_live_view(folder / "live_view.png")
    draw_comparison(folder / "compare.png")
