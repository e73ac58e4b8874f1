"""How figures of pages are compared with the values of files, and that every page and file is compared."""

from pathlib import Path

import pytest
from evidence import DOCS, RESULTS, agrees, disagreements, figures


@pytest.mark.parametrize(
    ("figure", "value", "equal"),
    [
        ("0.69", 0.6949, True),
        ("0.69", 0.6951, False),
        ("−19.9", -19.94, True),
        ("−19.9", 19.9, False),
        ("1,535", 1535.4, True),
        ("1,535", 1536.0, False),
        ("38,300", 38_271.9, True),
        ("38,300", 38_200.0, False),
        ("0", 0.4, True),
        ("0.0", 0.4, False),
    ],
)
def test_figure_agrees_with_the_values_that_are_rounded_to_it(figure: str, value: float, equal: bool) -> None:
    assert agrees(figure, value) == equal


def test_numbers_in_words_are_no_figures() -> None:
    text = " 2.15 | 1.88 (`dqn_atari.py`, 373) Stable-Baselines3's bf16 C51 −2.5 "
    assert figures(text) == ["2.15", "1.88", "373", "−2.5"]


def test_missing_figure_is_a_disagreement() -> None:
    assert disagreements("1.0 and 2.0", [1.0]) == ["2 figures in '1.0 and 2.0', expected 1"]


def test_figure_of_another_value_is_a_disagreement() -> None:
    assert disagreements("1.0 and 2.0", [1.0, 2.1]) == ["2.0 is not 2.1"]


def test_every_page_of_results_has_a_module_of_tests() -> None:
    pages = {page.stem for page in RESULTS.glob("*.md")} - {"README"}
    modules = Path(__file__).parent.glob("test_*_page.py")
    assert pages - {each.stem.removeprefix("test_").removesuffix("_page") for each in modules} == set()


def test_every_kept_file_is_linked_from_a_page() -> None:
    files = [*DOCS.rglob("*.md"), DOCS.parent / "benchmarks/README.md"]
    pages = "\n".join(file.read_text(encoding="utf-8") for file in files)
    assert [file.name for file in RESULTS.glob("*.json") if f"{file.name})" not in pages] == []
