"""Digests of shipped specs do not change when keys are added that they do not use."""

import json
from pathlib import Path

import pytest

from atari_dqn.spec.digest import spec_digest
from atari_dqn.spec.loader import load_spec

RUNS = Path(__file__).parents[2] / "runs"
DIGESTS = json.loads(Path(__file__).with_name("shipped_digests.json").read_text())
"""The first digits of each digest before exploration, flicker and memory became keys."""


@pytest.mark.parametrize("name", DIGESTS)
def test_digest_is_that_of_before(name: str) -> None:
    assert spec_digest(load_spec(RUNS / f"{name}.toml").spec)[:16] == DIGESTS[name]
