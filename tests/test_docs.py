import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "benchmarks" / "README.md",
    ROOT / "runs" / "README.md",
]
START = "pip install -c constraints.txt -e . && dqn train pong_quick"
TEST = "pip install -c constraints.txt -e '.[dev]' && pytest -n auto"


@pytest.mark.parametrize("command", [START, TEST])
def test_readme_gives_the_command_on_a_line_of_its_own(command):
    assert command in README.splitlines()


def test_the_readme_is_for_the_first_ten_minutes():
    assert len(README.splitlines()) <= 150


def test_every_figure_of_the_readme_s_tables_is_on_a_page_of_the_docs():
    sections = re.findall(
        r"^## (?:Compared with others|Results)\n(.*?)(?=^## )", README, flags=re.DOTALL | re.MULTILINE
    )
    rows = "\n".join(line for section in sections for line in section.splitlines() if line.startswith("|"))
    figures = set(re.findall(r"\d[\d.,]*\d", re.sub(r"\]\([^)]*\)", "]", rows)))
    pages = [*(ROOT / "docs" / "results").glob("*.md"), ROOT / "docs" / "comparing.md"]
    known = set(re.findall(r"\d[\d.,]*\d", "\n".join(page.read_text() for page in pages)))
    assert "1,535" in figures
    assert sorted(figures - known) == []


def test_ci_runs_both_halves_of_the_test_command_as_the_readme_gives_them():
    install, test = TEST.split(" && ")
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert lines.index(install) < lines.index(test)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_lead_somewhere(page):
    targets = [target for target in re.findall(r"\]\(([^)#]+)", page.read_text()) if "://" not in target]
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_every_benchmark_that_the_page_lists_is_there():
    folder = ROOT / "benchmarks"
    listed = re.findall(r"^\| `([\w.]+)", (folder / "README.md").read_text(), flags=re.MULTILINE)
    assert "versus.py" in listed
    assert [name for name in listed if not (folder / name).is_file()] == []


@pytest.mark.parametrize("table", ["D", "B"])
def test_rows_of_deviations_are_numbered_in_order(table):
    page = (ROOT / "docs" / "deviations.md").read_text()
    rows = re.findall(rf"^\| {table}(\d+) \|", page, flags=re.MULTILINE)
    assert rows
    assert [int(row) for row in rows] == list(range(1, len(rows) + 1))


def test_decisions_have_numbers_of_their_own_which_they_begin_with():
    pages = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    numbers = [page.name[:4] for page in pages]
    assert len(set(numbers)) == len(pages)
    assert [page.read_text()[:7] for page in pages] == [f"# {number}:" for number in numbers]


def test_pages_that_the_code_cites_exist():
    sources = "".join(path.read_text() for path in (ROOT / "atari_dqn").rglob("*.py"))
    cited = set(re.findall(r"docs/[\w/.-]+\.md", sources))
    assert "docs/deviations.md" in cited
    assert [page for page in cited if not (ROOT / page).exists()] == []


def test_the_newest_transition_is_deviation_twelve():
    # atari_dqn/train/loop.py cites the row by its number
    assert "| D12 | newest transition |" in (ROOT / "docs" / "deviations.md").read_text()


def test_the_list_of_decisions_is_current():
    script = runpy.run_path(str(ROOT / "scripts" / "make_decision_list.py"))
    remedy = "docs/decisions/README.md is old: run `python scripts/make_decision_list.py`"
    assert (ROOT / "docs" / "decisions" / "README.md").read_text() == script["page"](), remedy


def test_the_key_reference_is_current():
    script = runpy.run_path(str(ROOT / "scripts" / "make_key_reference.py"))
    remedy = "docs/keys.md is old: run `python scripts/make_key_reference.py`"
    assert (ROOT / "docs" / "keys.md").read_text() == script["page"](), remedy
