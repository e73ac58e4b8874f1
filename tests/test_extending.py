"""`docs/extending.md` names files that are there, and every registry that a new part must be entered in."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text()


def test_files_that_the_page_names_are_there():
    named = set(re.findall(r"`((?:atari_dqn|tests|docs|scripts|benchmarks)/[\w/.*-]+)`", PAGE))
    assert "atari_dqn/spec/games.py" in named
    assert [name for name in named if "NAME" not in name and not list(ROOT.glob(name))] == []


@pytest.mark.parametrize("registry", ["ENVS", "GAME_CHECKS", "Env.kind", "SINKS", "Toggles", "_EXTRAS"])
def test_registries_are_named(registry: str):
    assert f"`{registry}`" in PAGE
