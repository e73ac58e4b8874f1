"""A folder of runs with planted numbers, videos, awkward names and faults."""

import sys
from pathlib import Path

import av
import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[1] / "compare"))

from serving import CHROMIUM

from runs import make_run

LADDER = {"pong_1_vanilla": (-5.0, -3.0), "pong_2_double": (10.0, 12.0)}
"""Last evaluations of two seeds each."""


def make_video(path: Path, *, frames: int = 30) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = 64, 64, "yuv420p"
        for place in range(frames):
            picture = np.full((64, 64, 3), 8 * place % 256, np.uint8)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        container.mux(stream.encode())


def make_web_page(folder: Path) -> None:
    """A page whose script tries to read the dashboard, and says what became of it."""
    folder.mkdir()
    (folder / "index.html").write_text("<p>not yet</p><script src='player.js'></script>")
    (folder / "player.js").write_text(
        "const say = text => { document.querySelector('p').textContent = text; };"
        "fetch('/').then(() => say('read'), () => say('refused'));"
    )
    (folder / "notes.txt").touch()


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ROOT, a link itself, with four sound runs of a ladder and five other entries."""
    place = tmp_path_factory.mktemp("dashboard")
    outside = make_run(place / "outside", [-20.0, 0.0])
    make_video(outside / "videos" / "step_000125000_run.mp4")
    real = place / "real root é"
    for name, scores in LADDER.items():
        for seed, score in enumerate(scores, start=1):
            make_run(
                real / f"{name} [é] seed{seed}",
                [-20.0, -10.0, score],
                spec=f"ablations/{name}.toml",
                overrides=[f"seed={seed}"],
                training_return=score - 1,
            )
    filmed = real / "pong_2_double [é] seed2"
    for step in (125_000, 375_000):
        make_video(filmed / "videos" / f"step_{step:09d}_run.mp4")
    make_web_page(filmed / "web")
    (filmed / "notes.html").touch()
    (filmed / "videos" / "step_000500000_run.mp4").symlink_to(outside / "videos" / "step_000125000_run.mp4")
    cut = make_run(real / "cut", [-20.0, 1.0], spec="pong_trackA.toml")
    with (cut / "eval_log.csv").open("a") as file:
        file.write("1,2,")
    (real / "<img src=x onerror=alert(1)>").mkdir()
    (real / "<img src=x onerror=alert(1)>" / "spec.toml").write_text("track = ")
    (real / "led out").symlink_to(outside)
    (real / "circle").symlink_to(real)
    damaged = make_run(real / "no table", [-20.0, 1.0], spec="pong_trackA.toml", overrides=["seed=7"])
    (damaged / "eval_log.csv").unlink()
    link = place / "root"
    link.symlink_to(real)
    return link


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium here")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    page = browser.new_page()
    page.set_default_timeout(30_000)
    yield page
    page.close()
