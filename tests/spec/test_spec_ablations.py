"""The ladder of ablations: each spec adds one toggle to the one before, under the same protocol."""

from itertools import pairwise
from pathlib import Path

import pytest

from atari_dqn.run.scores import score_protocol
from atari_dqn.spec.diff import diff_specs
from atari_dqn.spec.keys import KEYS
from atari_dqn.spec.loader import ResolvedSpec, load_spec
from atari_dqn.spec.protocol import Protocol

RUNS = Path(__file__).parents[2] / "runs"
LADDER = sorted((RUNS / "ablations").glob("pong_*.toml"))
TOGGLES = ("double", "prioritized", "dueling")
"""In the order of the steps."""


def steps() -> list[ResolvedSpec]:
    return [load_spec(path) for path in LADDER]


def test_ladder_has_four_specs_named_by_the_toggle_they_add():
    assert [path.stem for path in LADDER] == [
        "pong_1_vanilla",
        "pong_2_double",
        "pong_3_prioritized",
        "pong_4_dueling",
    ]


@pytest.mark.parametrize("step", range(4))
def test_each_step_has_its_toggles_and_those_of_the_steps_before(step: int):
    toggles = steps()[step].spec.toggles
    assert [getattr(toggles, name) for name in TOGGLES] == [step > place for place in range(3)]


def test_neighbours_differ_in_one_toggle_and_the_keys_that_belong_to_it():
    for toggle, (before, after) in zip(TOGGLES, pairwise(steps()), strict=True):
        name = f"toggles.{toggle}"
        differing = {difference.key for difference in diff_specs(before.spec, after.spec)}
        of_the_toggle = ({name}, {name, "network.kind"})  # the network is the same in all steps
        assert differing == {name} | {
            key for key, found in KEYS.items() if {when.key for when in found.when} in of_the_toggle
        }


def test_every_step_is_track_b_without_a_deviation():
    assert [(step.track_label, step.deviations) for step in steps()] == [("B", ())] * 4


def test_last_step_is_track_b_itself():
    assert steps()[-1].spec == load_spec(RUNS / "pong_trackB.toml").spec


def test_all_steps_are_scored_under_one_protocol():
    protocols: set[Protocol] = {
        score_protocol(step.spec, episodes=30, checkpoint="last", rom_md5="") for step in steps()
    }
    assert len(protocols) == 1
