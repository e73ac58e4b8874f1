import runpy
from pathlib import Path

import pytest

from atari_dqn.compare.comparison import compare
from atari_dqn.compare.output.page import page
from runs import make_run

SCRIPT = Path(__file__).parents[2] / "scripts" / "video_in_browser.py"
DOTS = "dots => dots.map(dot => dot.getBoundingClientRect().width)"


@pytest.mark.slow
def test_group_of_one_evaluation_is_a_point_with_one_for_each_seed(tmp_path: Path) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="the extra dev is not there")
    chromium = runpy.run_path(str(SCRIPT))["CHROMIUM"]
    if chromium is None:
        pytest.skip("no Chromium here")
    runs = [make_run(tmp_path / f"run{seed}", [5.0 + seed], overrides=[f"seed={seed}"]) for seed in (1, 2)]
    (tmp_path / "page.html").write_text(page(compare(runs, human_table="atari57"), folder=tmp_path))
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        opened = browser.new_page()
        opened.goto((tmp_path / "page.html").as_uri())
        widths = opened.locator(".chart circle").evaluate_all(DOTS)
        opened.screenshot(path=str(tmp_path / "page.png"), full_page=True)
        browser.close()
    assert len(widths) == 3
    assert min(widths) > 0
