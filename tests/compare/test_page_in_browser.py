import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from atari_dqn.compare.comparison import compare
from atari_dqn.compare.output.page import page
from runs import make_run

SCRIPT = Path(__file__).parents[2] / "scripts" / "video_in_browser.py"
DOTS = "dots => dots.map(dot => dot.getBoundingClientRect().width)"


pytestmark = pytest.mark.slow  # they start a browser


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Any]:
    """The page of two seeds with one evaluation each."""
    playwright = pytest.importorskip("playwright.sync_api", reason="the extra dev is not there")
    chromium = runpy.run_path(str(SCRIPT))["CHROMIUM"]
    if chromium is None:
        pytest.skip("no Chromium here")
    runs = [make_run(tmp_path / f"run{seed}", [5.0 + seed], overrides=[f"seed={seed}"]) for seed in (1, 2)]
    (tmp_path / "page.html").write_text(page(compare(runs, human_table="atari57"), folder=tmp_path))
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        opened = browser.new_page(viewport={"width": 390, "height": 844})
        opened.goto((tmp_path / "page.html").as_uri())
        yield opened
        browser.close()


def test_group_of_one_evaluation_is_a_point_with_one_for_each_seed(opened: Any) -> None:
    widths = opened.locator(".chart circle").evaluate_all(DOTS)
    assert len(widths) == 3
    assert min(widths) > 0


def test_page_is_not_wider_than_a_phone_that_shows_it(opened: Any) -> None:
    assert opened.evaluate("document.documentElement.scrollWidth") == 390


def test_text_of_a_chart_is_not_smaller_on_a_phone(opened: Any) -> None:
    scale = opened.locator(".chart svg").first.evaluate("svg => svg.getScreenCTM().a")
    assert scale == pytest.approx(1, abs=0.01)
