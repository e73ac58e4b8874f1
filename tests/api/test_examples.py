"""The examples of the public functions, and those of docs/api.md, run one after another as written."""

import doctest
import re
import runpy
from pathlib import Path

import pytest

import atari_dqn as dqn

ROOT = Path(__file__).parents[2]
ORDER = ("train", "load", "Agent", "Run", "compare", "make_env", "evaluate")
"""The run that `train` makes is that of the other examples."""
PAGE = (ROOT / "docs" / "api.md").read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("examples")


def test_every_public_name_has_an_example() -> None:
    assert set(ORDER) == set(dqn.__all__)


@pytest.mark.slow
@pytest.mark.parametrize("name", ORDER)
def test_the_example_of_a_public_name_runs(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    public = dqn._public(name)
    examples = [test for test in doctest.DocTestFinder().find(public, name) if test.examples]
    assert examples[0].name == name, "the name itself has an example"
    runner = doctest.DocTestRunner(verbose=False)
    for example in examples:
        runner.run(example)
    assert runner.failures == 0, capsys.readouterr().out


@pytest.mark.slow
def test_the_page_s_blocks_run_one_after_another(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 5
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/api.md", "exec"), names)


def test_the_reference_of_public_names_is_current() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "make_api_reference.py"))
    remedy = "docs/api_reference.md is old: run `python scripts/make_api_reference.py`"
    assert (ROOT / "docs" / "api_reference.md").read_text() == script["page"](), remedy


def test_the_page_names_everything_public() -> None:
    assert [name for name in dqn.__all__ if f"dqn.{name}" not in PAGE] == []
