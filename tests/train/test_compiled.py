"""Compiled work: the same as it is written, to rounding, by the same random numbers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from atari_dqn.agents.compiled import Compiled, check_compiler
from atari_dqn.agents.draws import Rehearsal, Wanted, normal, uniform
from atari_dqn.errors import UserError

RAINBOW = (
    "toggles.double=true", "toggles.dueling=true", "toggles.prioritized=true", "toggles.n_step=3",
    "toggles.noisy=true", "toggles.distribution=c51",
)  # fmt: skip
RANDOM = (RAINBOW, ("toggles.distribution=iqn", "toggles.munchausen=true"))
OTHERS = (
    (), ("learner.precision=bf16",), ("learner.accumulate=4",), ("toggles.distribution=qr_dqn",),
    ("toggles.random_shifts=true",), ("network.kind=impala",), ("env.lanes=3",),
    (*RAINBOW, "network.kind=data_efficient"), (*RAINBOW, "network.kind=dopamine"),
)  # fmt: skip


def beside_plain(backend: str, updates: int, *combinations: tuple[str, ...]) -> list[dict[str, float]]:
    """What each combination learns compiled, beside what it learns as it is written."""
    program = str(Path(__file__).with_name("beside_plain.py"))
    command = [sys.executable, program, backend, str(updates), json.dumps(combinations)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.fixture(scope="module")
def traced() -> list[dict[str, float]]:
    """Both that draw random numbers, read by PyTorch and played as they are: the compiler takes long."""
    return beside_plain("aot_eager", 8, *RANDOM)


def test_what_is_compiled_learns_the_same(traced: list[dict[str, float]]) -> None:
    assert [row["difference_over_movement"] < 1e-3 for row in traced] == [True, True]


def test_what_is_compiled_leaves_the_random_streams_in_the_same_place(
    traced: list[dict[str, float]],
) -> None:
    assert [row["same_streams"] for row in traced] == [True, True]


def test_what_is_compiled_goes_on_to_the_bit(traced: list[dict[str, float]]) -> None:
    assert [row["goes_on"] for row in traced] == [True, True]


@pytest.mark.slow
@pytest.mark.parametrize("overrides", [*RANDOM, *OTHERS], ids=" ".join)
def test_compiled_kernels_learn_the_same_to_rounding_and_go_on_to_the_bit(overrides: tuple[str, ...]) -> None:
    (row,) = beside_plain("inductor", 40, overrides)
    assert row["difference_over_movement"] < (0.1 if "learner.precision=bf16" in overrides else 0.01)
    assert row["goes_on"]


def drawing(rng: object, scale: torch.Tensor) -> torch.Tensor:
    return scale * normal(rng, 3) + uniform(rng, 2, 3).sum(dim=0)


def test_rehearsal_notes_what_is_drawn_in_order() -> None:
    rehearsal = Rehearsal(torch.device("cpu"))
    drawing(rehearsal, torch.ones(3))
    assert rehearsal.wanted == [Wanted("normal", (3,)), Wanted("uniform", (2, 3))]


def test_without_a_compiler_a_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(UserError, match=r"no C\+\+ compiler here \(looked for g\+\+"):
        check_compiler()


def test_compiler_named_by_the_environment_is_the_one_that_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(UserError, match="looked for no-such-compiler"):
        check_compiler()


def test_what_cannot_be_compiled_is_an_error_with_the_way_out() -> None:
    with pytest.raises(UserError, match=r"learner\.compile = false works"):
        # as all of the package's functions in tests, this class is watched, which PyTorch cannot compile
        Compiled(drawing)(torch.Generator(), torch.ones(3))
