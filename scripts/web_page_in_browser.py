"""Keep a picture of a page of `dqn export --web`: python scripts/web_page_in_browser.py DIR STEP OUT.png

Opens the page in headless Chromium at a step of its first game. Needs the extra `dev` and a Chromium.
"""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import ViewportSize, sync_playwright
from video_in_browser import CHROMIUM

SIZE: ViewportSize = {"width": 1000, "height": 700}


def picture(folder: Path, step: int) -> bytes:
    """Return the whole page at a step, as PNG."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport=SIZE, color_scheme="dark")
        page.goto((folder / "index.html").resolve().as_uri())
        page.locator("#position").fill(str(step))
        page.wait_for_selector(f"#screen[data-position='{step}']")
        found = page.screenshot(full_page=True)
        browser.close()
    return found


def main() -> None:
    """Write the picture with 256 colours, a third of the size."""
    folder, step, out = sys.argv[1:]
    Image.open(BytesIO(picture(Path(folder), int(step)))).quantize(256).save(out, optimize=True)


if __name__ == "__main__":
    main()
