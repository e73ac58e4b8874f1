"""Check the built site: every link within it leads somewhere, and no page loads anything from elsewhere.

python docs/site/checks.py build/site      prints each finding and exits with 1 if there is any
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"src", "srcset", "data", "poster", "action"}
"""Attributes whose address a browser loads; `href` is one in <link> alone."""
STYLE = re.compile(r"""@import\s+["']?([^"';\s)]+)|url\(\s*["']?([^"')]+)""")
ELSEWHERE = re.compile(r"^(?:https?:)?//", re.IGNORECASE)


class Page(HTMLParser):
    """The addresses in a page, and the names of its parts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the addresses of an element."""
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.names.add(value)
            if name in LOADED or (tag == "link" and name == "href"):
                self.loaded.append(value or "")
            elif name == "href":
                self.links.append(value or "")
            elif name == "style":
                self.loaded += addresses_of_style(value or "")


@cache
def read(path: Path) -> Page:
    """Read a page."""
    return Page(path.read_text(encoding="utf-8"))


def addresses_of_style(text: str) -> list[str]:
    """List the addresses that a style sheet loads."""
    return [first or second for first, second in STYLE.findall(text)]


def findings(site: Path) -> Iterator[str]:
    """Yield each fault, with its page."""
    pages = sorted(site.rglob("*.html"))
    if not pages:
        yield f"{site}: has no pages"
    for path in pages:
        page, name = read(path), path.relative_to(site)
        yield from (f"{name}: loads {found}" for found in page.loaded if ELSEWHERE.match(found))
        local = [found for found in (*page.loaded, *page.links) if is_local(found)]
        yield from (f"{name}: {found} leads nowhere" for found in local if not exists(path, found))
    for path in sorted(site.rglob("*.css")):
        for found in addresses_of_style(path.read_text(encoding="utf-8")):
            if ELSEWHERE.match(found):
                yield f"{path.relative_to(site)}: loads {found}"


def is_local(address: str) -> bool:
    """Return whether an address is within the site."""
    return not urlsplit(address).scheme and not ELSEWHERE.match(address)


def exists(page: Path, address: str) -> bool:
    """Return whether an address on a page leads to a file, and to a part of it."""
    parts = urlsplit(address)
    target = page.parent / unquote(parts.path) if parts.path else page
    if not target.is_file():
        return False
    return not parts.fragment or target.suffix != ".html" or unquote(parts.fragment) in read(target).names


def main() -> None:
    """Print the faults of the site that the first argument names."""
    found = list(findings(Path(sys.argv[1])))
    print("\n".join(found))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
