"""Makes docs/images/dashboard_*.png: pages of a served dashboard, as headless Chromium shows them.

`dqn dashboard ROOT` runs at the same time: python scripts/make_dashboard_images.py --address http://127.0.0.1:8642/
"""

import argparse
import json
import shutil
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from atari_dqn.dashboard.layout import PAGES

OUT = Path(__file__).parents[1] / "docs" / "images"
ADDRESSES = {address.strip("/") or "runs": address for address in PAGES}
DOCUMENTED = ("curves", "live", "videos", "ablations", "replay")
"""The pages whose images the documentation links."""
SHOWN = ".overview, .sweep, .main-svg, video, .diff, .live-run, .text-lg"
SETTLE_MILLISECONDS = 2_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", default="http://127.0.0.1:8642/")
    parser.add_argument("--pages", nargs="*", default=list(DOCUMENTED), choices=list(ADDRESSES))
    parser.add_argument("--times", type=Path, help="write the seconds until each page showed, as JSON")
    arguments = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    seconds = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        for name in arguments.pages:
            began = time.perf_counter()
            page.goto(arguments.address.rstrip("/") + ADDRESSES[name])
            page.wait_for_selector(SHOWN)
            seconds[name] = round(time.perf_counter() - began, 2)
            page.wait_for_timeout(SETTLE_MILLISECONDS)
            page.screenshot(path=OUT / f"dashboard_{name}.png")
        browser.close()
    print(json.dumps(seconds, indent=2))
    if arguments.times:
        arguments.times.write_text(json.dumps(seconds, indent=2) + "\n")


if __name__ == "__main__":
    main()
