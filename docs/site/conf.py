"""Configuration of the documentation site, which Sphinx builds from the pages where they are.

`.ci/step docs` builds it: every warning is an error, and the built pages request nothing from other hosts.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from atari_dqn import __version__

project = "atari_dqn"
release = __version__
copyright = "the authors of atari_dqn, MIT licence"  # noqa: A001 - Sphinx's name

extensions = ["myst_parser", "page_contents", "mathml"]
root_doc = "README"
include_patterns = [
    "README.md",
    "CHANGELOG.md",
    "docs/**/*.md",
    "docs/*.md",
    "runs/README.md",
    "benchmarks/README.md",
]
exclude_patterns = [".*", "build", "dist", "outputs", "atari_dqn", "tests", "docs/results/atari100k"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
nitpicky = True
highlight_language = "text"

html_theme = "furo"
html_title = f"atari_dqn {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_show_sphinx = False
html_copy_source = False
