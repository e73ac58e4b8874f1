"""Give pages the tables of contents from which Sphinx makes the navigation.

They are in `contents.toml`, because other readers of the same Markdown would show them as text.
"""

import shutil
import tomllib
from pathlib import Path
from typing import Any

CONTENTS: dict[str, dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_name("contents.toml").read_text(encoding="utf-8")
)
"""For each page the pages below it, by the caption of their group; without a caption the page lists them."""


def append_contents(_: Any, page: str, source: list[str]) -> None:
    """Append a page's tables of contents to its source."""
    for caption, below in CONTENTS.get(page, {}).items():
        options = [":glob:", *([":hidden:", f":caption: {caption}"] if caption else [":maxdepth: 1"])]
        source[0] += "\n".join(["\n\n```{toctree}", *options, "", *(f"/{name}" for name in below), "```\n"])


def make_front_page(app: Any, exception: Exception | None) -> None:
    """Copy the page made from README.md to the name under which a web server looks for it."""
    if exception is None and app.builder.format == "html":
        shutil.copyfile(Path(app.outdir, "README.html"), Path(app.outdir, "index.html"))


def setup(app: Any) -> dict[str, bool]:
    """Register both with Sphinx."""
    app.connect("source-read", append_contents)
    app.connect("build-finished", make_front_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
