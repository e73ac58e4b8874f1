"""Play a video in headless Chromium and keep a picture: python scripts/video_in_browser.py VIDEO OUT.png

Needs the extra `dev` and a Chromium on the path.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PLAY = """async () => {
    const video = document.querySelector('video');
    video.muted = true;
    const began = video.currentTime;
    await video.play();
    while (video.currentTime < began + 0.5 && !video.ended && !video.error)
        await new Promise(resume => setTimeout(resume, 20));
    video.pause();
    return {width: video.videoWidth, height: video.videoHeight, seconds: video.currentTime,
            duration: video.duration, error: video.error && video.error.message};
}"""


@dataclass(frozen=True, kw_only=True)
class Played:
    """What the browser says of the video once half a second of it has been played."""

    width: int
    height: int
    seconds: float
    duration: float
    error: str | None


def play(video: Path, picture: Path | None = None) -> Played:
    """Open a video, play half a second of it, and keep what the page then shows."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 960, "height": 680})
        page.goto(video.resolve().as_uri())
        played = Played(**page.evaluate(PLAY))
        if picture is not None:
            page.screenshot(path=str(picture))
        browser.close()
    return played


if __name__ == "__main__":
    print(play(Path(sys.argv[1]), Path(sys.argv[2])))
