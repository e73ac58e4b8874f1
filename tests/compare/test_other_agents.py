"""Published figures of one agent give no verdict on another that has its protocol and its toggles."""

from pathlib import Path

import pytest

from atari_dqn.compare.comparison import GroupResult, compare
from atari_dqn.compare.reference.agents import subject_of
from atari_dqn.spec.loader import load_spec
from runs import RUNS, make_run

FOUR_EVALUATIONS = [-20.0, -15.0, -10.0, 0.0]


def result_of(folder: Path, spec: str, overrides: tuple[str, ...] = ()) -> GroupResult:
    """Compare one run of two million frames."""
    run = make_run(folder / "run", FOUR_EVALUATIONS, spec=spec, overrides=overrides)
    return compare([run], human_table="atari57").results[0]


def test_dqn_has_a_verdict(tmp_path: Path):
    assert {each.verdict for each in result_of(tmp_path, "pong_trackA.toml").references} == {"above"}


@pytest.mark.parametrize(
    ("spec", "overrides"),
    [
        ("drqn.toml", ()),
        ("pong_trackA.toml", ("network.memory=gru", "learner.value_rescaling=false")),
        ("pong_trackA.toml", ("network.kind=impala",)),
        ("pong_trackA.toml", ("env.stack_frames=1",)),
    ],
    ids=["drqn", "gru", "impala", "one frame"],
)
def test_another_agent_on_the_protocol_of_dqn_has_none(tmp_path: Path, spec: str, overrides: tuple[str, ...]):
    references = result_of(tmp_path, spec, overrides).references
    assert {each.verdict for each in references} == {""}
    assert references[0].reference.differences == ("agent dqn",)


@pytest.mark.parametrize("spec", ["pqn.toml", "drqn.toml", "rainbow.toml", "atari100k_der.toml"])
def test_agent_of_a_comparison_is_that_of_the_live_view(tmp_path: Path, spec: str):
    assert result_of(tmp_path, spec).group.method.agent == subject_of(load_spec(RUNS / spec).spec).agent
