"""The documentation site: its navigation names every page, and its checks find what they are for."""

import importlib.util
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "site"
FINDINGS = runpy.run_path(str(SITE / "checks.py"))["findings"]


def faults(folder: Path, page: str, style: str = "") -> list[str]:
    (folder / "page.html").write_text(page)
    (folder / "other.html").write_text('<p id="part">')
    (folder / "site.css").write_text(style)
    return list(FINDINGS(folder))


@pytest.mark.parametrize(
    "page",
    [
        '<a href="other.html#part">',
        '<a href="#here"><p id="here">',
        '<a href="https://example.org/">',
        '<img src="other.html">',
    ],
)
def test_link_that_leads_somewhere_is_no_fault(page: str, tmp_path: Path) -> None:
    assert faults(tmp_path, page) == []


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ('<a href="missing.html">', "page.html: missing.html leads nowhere"),
        ('<a href="other.html#none">', "page.html: other.html#none leads nowhere"),
        ('<img src="https://example.org/a.png">', "page.html: loads https://example.org/a.png"),
        ('<script src="//example.org/a.js"></script>', "page.html: loads //example.org/a.js"),
        ('<link href="https://example.org/a.css">', "page.html: loads https://example.org/a.css"),
        ('<p style="background: url(http://a.b/c)">', "page.html: loads http://a.b/c"),
    ],
)
def test_fault_of_a_page_is_found(page: str, fault: str, tmp_path: Path) -> None:
    assert faults(tmp_path, page) == [fault]


def test_style_sheet_that_loads_a_font_from_elsewhere_is_found(tmp_path: Path) -> None:
    style = "@font-face { src: url('https://example.org/a.woff2') }"
    assert faults(tmp_path, "", style) == ["site.css: loads https://example.org/a.woff2"]


def test_folder_without_pages_is_a_fault(tmp_path: Path) -> None:
    assert list(FINDINGS(tmp_path)) == [f"{tmp_path}: has no pages"]


def test_navigation_names_every_page_once() -> None:
    contents = tomllib.loads((SITE / "contents.toml").read_text())
    named = [name for groups in contents.values() for pages in groups.values() for name in pages]
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "results").glob("*.md")]
    assert len(set(named)) == len(named)
    assert {str(page.relative_to(ROOT).with_suffix("")) for page in pages} - set(named) == set()


LOADED = """
import sys
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    browser = playwright.chromium.launch(executable_path=sys.argv[1], args=["--no-sandbox", "--disable-gpu"])
    page = browser.new_page()
    page.on("request", lambda request: print(request.url))
    for address in sys.argv[2:]:
        page.goto(address, wait_until="networkidle")
"""


@pytest.mark.thorough
def test_built_pages_request_nothing_from_elsewhere(tmp_path: Path) -> None:
    chromium = shutil.which("chromium")
    if chromium is None or not all(map(importlib.util.find_spec, ("sphinx", "furo", "myst_parser"))):
        pytest.skip("no Chromium here, or the extra docs is not there")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "-c", SITE, ROOT, tmp_path]
    subprocess.run(build, check=True)
    addresses = [(tmp_path / name).as_uri() for name in ("index.html", "docs/equations.html", "search.html")]
    command = [sys.executable, "-c", LOADED, chromium, *addresses]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert len(done.stdout.split()) > len(addresses)
    assert [found for found in done.stdout.split() if not found.startswith(("file:", "data:"))] == []
