"""Pages in use: on a phone, in the dark, by their names for assistive technology, and while runs change."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import served
from test_sweeps_page import make_sweep

from runs import make_run

pytestmark = pytest.mark.slow  # they start a browser

LONG = "a_long_name_without_any_place_to_break_a_line"
CONTRAST = """text => {
    const rgb = colour => colour.match(/[0-9.]+/g).slice(0, 3).map(Number);
    const luminance = colour => rgb(colour).map(each => each / 255)
        .map(each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
        .reduce((sum, each, place) => sum + each * [0.2126, 0.7152, 0.0722][place], 0);
    const both = [getComputedStyle(text).fill, getComputedStyle(document.body).backgroundColor];
    const [dark, light] = both.map(luminance).sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
}"""
"""The contrast ratio of WCAG 2."""


@pytest.fixture(scope="module")
def folder(root: Path) -> Path:
    make_run(root / LONG, [-20.0, 1.0], spec="pong_trackA.toml", overrides=["seed=9"])
    make_sweep(root / "sweeps", seeds=30)
    return root


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with served(folder) as address:
        yield address


@pytest.mark.parametrize("name", ["", "curves", "live", "sweeps", "videos", "games", "ablations", "replay"])
def test_page_is_not_wider_than_a_phone(address: str, page, name: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(address + name)
    page.wait_for_selector(".q-page-container .q-table, .js-plotly-plot, .live-run, video, .text-lg")
    page.wait_for_timeout(1_000)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_labels_of_axes_are_legible_on_a_dark_page(address: str, page) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(f"{address}curves")
    assert page.locator(".js-plotly-plot .xtick text").first.evaluate(CONTRAST) >= 4.5


def test_slider_has_a_name(address: str, page) -> None:
    page.goto(f"{address}curves")
    page.wait_for_selector(".smoothing")
    assert page.get_by_role("slider", name="smoothing").count() == 1


def test_long_name_leaves_room_for_the_other_columns(address: str, page) -> None:
    page.set_viewport_size({"width": 800, "height": 600})
    page.goto(address)
    box = page.locator(".overview th", has_text="written").bounding_box()
    assert box["x"] + box["width"] <= 800


def test_second_page_of_a_sweep_stays_after_a_refresh(address: str, page) -> None:
    page.goto(f"{address}sweeps")
    page.locator(".sweep button", has_text="chevron_right").click()
    page.wait_for_timeout(7_000)
    assert page.get_by_text("21-30 of 30").count() == 1


def test_run_that_begins_appears_on_the_live_page(page, tmp_path: Path) -> None:
    make_run(tmp_path / "first", [-20.0])
    with served(tmp_path) as address:
        page.goto(f"{address}live")
        page.wait_for_selector(".live-run")
        make_run(tmp_path / "second", [-20.0])
        page.wait_for_selector(".live-run >> text=second")
        assert page.locator(".live-run").count() == 2
