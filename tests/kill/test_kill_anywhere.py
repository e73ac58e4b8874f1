"""A run that is killed at any moment and resumed is the same run, to the last bit, on the real emulator."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from killing import (
    Case,
    Kill,
    Zygote,
    differences,
    killed_over_and_over,
    killed_while_raised,
    outcome,
    random_kill,
    random_kill_of_a_raise,
    run_command,
    unbroken,
)

pytestmark = pytest.mark.slow

KILLS = 5
SMALL = (
    "replay.sequence_steps=16", "replay.burn_in_steps=8", "replay.sequence_period_steps=8",
    "network.memory_units=32", "learner.batch_size=4",
)  # fmt: skip
R2D2 = ("network.memory=lstm", "toggles.n_step=5", *SMALL)
DRQN = (
    "network.memory=lstm",
    "env.stack_frames=1",
    "network.hidden_units=0",
    "replay.stored_state=false",
    *SMALL,
)
FEWEST_KILLS = 3
"""Some are to fall at a call that the rest of a run may not make."""


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote() as process:
        yield process


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(Case("breakout", "B", 8, 2), marks=pytest.mark.thorough),
        Case("pong", "B", 4, 0, further=R2D2),
        pytest.param(Case("pong", "A", 1, 0), marks=pytest.mark.thorough),
        pytest.param(Case("seaquest", "A", 8, 0), marks=pytest.mark.thorough),
        pytest.param(Case("breakout", "A", 1, 0, further=DRQN), marks=pytest.mark.thorough),
    ],
    ids=str,
)
def test_run_that_is_killed_five_times_equals_one_that_never_was(
    zygote: Zygote, tmp_path: Path, case: Case
) -> None:
    assert not zygote.run(case, tmp_path / "whole")
    chance = random.Random(str(case))
    kills = [random_kill(chance) for _ in range(KILLS)]
    story = killed_over_and_over(zygote, case, tmp_path / "run", kills)
    assert len(story.kills) >= FEWEST_KILLS
    assert differences(outcome(tmp_path / "run"), outcome(tmp_path / "whole")) == []


def test_run_that_is_killed_while_its_budget_is_raised_equals_one_that_never_was(
    zygote: Zygote, tmp_path: Path
) -> None:
    case = Case("breakout", "B", 1, 0, raised_frames=(5_600, 6_400))
    unbroken(zygote, case, tmp_path / "whole")
    chance = random.Random(str(case))
    raising = [[random_kill_of_a_raise(chance), random_kill(chance)] for _ in case.raised_frames]
    story = killed_while_raised(zygote, case, tmp_path / "run", [[random_kill(chance)], *raising])
    assert len(story.kills) >= FEWEST_KILLS
    assert differences(outcome(tmp_path / "run"), outcome(tmp_path / "whole")) == []


def test_command_that_is_killed_three_times_equals_one_that_never_was(tmp_path: Path) -> None:
    case = Case("qbert", "B", 1, 1)
    assert not run_command(case, tmp_path / "whole")
    for lines in range(3):
        assert run_command(case, tmp_path / "run", Kill(events=2 + 2 * lines, seconds_later=0.02 * lines))
    assert not run_command(case, tmp_path / "run")
    assert differences(outcome(tmp_path / "run"), outcome(tmp_path / "whole")) == []
