"""Every page of a folder in which most runs are broken."""

import html
import urllib.request
from collections.abc import Iterator

import pytest
from broken_runs import GOOD, KINDS, make_broken_runs
from test_server import served

pytestmark = pytest.mark.slow

PAGES = ("", "curves", "live", "videos", "games", "ablations", "diff", "replay")
UNHARMED = {"budget raised to a word"}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    runs = make_broken_runs(tmp_path_factory.mktemp("broken"))
    with served(runs.root) as address:
        yield {page: text_of(address + page) for page in PAGES}


def text_of(address: str) -> str:
    with urllib.request.urlopen(address, timeout=120) as answer:
        return html.unescape(answer.read().decode())


@pytest.mark.parametrize("page", PAGES)
def test_every_broken_run_is_named_on(pages: dict[str, str], page: str) -> None:
    missing = [kind for kind in KINDS.keys() - UNHARMED if f"{kind}: " not in pages[page]]
    assert missing == []


@pytest.mark.parametrize("page", ["", "curves", "diff", "replay"])
def test_every_sound_run_is_listed_on(pages: dict[str, str], page: str) -> None:
    assert [name for name in GOOD if name not in pages[page]] == []


@pytest.mark.parametrize("page", ["games", "ablations"])
def test_sound_runs_are_compared_on(pages: dict[str, str], page: str) -> None:
    assert "pong" in pages[page]
    assert '"n":"' in pages[page]


def test_a_name_that_steers_is_escaped(pages: dict[str, str]) -> None:
    assert "c1\\\\x9b31m" in pages[""]
    assert "\x9b" not in pages[""]
    assert "\u202e" not in pages[""]
