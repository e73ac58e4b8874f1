"""Make docs/decisions/README.md, the list of all decisions, from their titles."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "decisions"
INTRODUCTION = """# Decisions

One page for each decision that readers may question, with its reason and what was not taken. Made by
`python scripts/make_decision_list.py`.

"""


def page() -> str:
    lines = []
    for path in sorted(FOLDER.glob("[0-9]*.md")):
        title = re.match(r"# (\d+): (.+)", path.read_text(encoding="utf-8"))
        assert title is not None, f"{path}: the first line is not `# NUMBER: TITLE`"
        lines.append(f"- [{title[1]}]({path.name}): {title[2]}")
    return INTRODUCTION + "\n".join(lines) + "\n"


if __name__ == "__main__":
    (FOLDER / "README.md").write_text(page(), encoding="utf-8")
