import re
import tomllib
from importlib.metadata import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGE = (ROOT / "docs" / "licences.md").read_text()


def names(requirements: list[str]) -> set[str]:
    return {re.match(r"[\w-]+", requirement)[0] for requirement in requirements}


def test_the_licence_is_said_in_every_place_that_tools_look_at():
    assert PROJECT["license"] == "MIT"
    assert PROJECT["license-files"] == ["LICENSE"]
    assert (ROOT / "LICENSE").read_text().startswith("MIT License\n")
    assert "\nlicense: MIT\n" in (ROOT / "CITATION.cff").read_text()


def test_the_citation_is_of_this_version():
    assert f"\nversion: {PROJECT['version']}\n" in (ROOT / "CITATION.cff").read_text()


def test_every_package_that_a_user_installs_is_listed_with_its_licence():
    extras = PROJECT["optional-dependencies"]
    users = [PROJECT["dependencies"], *(needed for extra, needed in extras.items() if extra != "dev")]
    listed = set(re.findall(r"^\| \**([\w-]+)\** ", PAGE, flags=re.MULTILINE)) - {"package"}
    assert listed == set().union(*(names(needed) for needed in users))


def test_the_emulator_s_licence_is_the_one_that_the_page_states():
    assert metadata("ale-py")["License-Expression"] == "GPL-2.0-only"
    assert "| **ale-py** | playing Atari | **GPL-2.0-only** |" in PAGE
