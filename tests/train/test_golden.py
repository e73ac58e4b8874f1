"""Golden traces of fixed runs. Changes of speed or style keep them; changes of algorithm need a reason.

To write it anew: `python tests/train/test_golden.py`.
"""

import json
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from tiny import TINY_CATCH, begun, tiny_spec

from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.schema import Spec

GOLDEN = Path(__file__).with_name("golden_catch.json")
FAMILIES = Path(__file__).with_name("golden_families.json")
RUNS = Path(__file__).parents[2] / "runs"
COLUMNS = ("step", "updates", "loss", "mean_q", "max_q", "grad_norm", "rolling_return", "epsilon")


def course(*overrides: str) -> list[dict[str, float]]:
    """Return rows of update_log from the first with an update on."""
    return course_of(tiny_spec("training.total_frames=1_400", *overrides))


def course_of(spec: Spec) -> list[dict[str, float]]:
    with begun(spec) as training:
        return [
            {name: row.values[name] for name in COLUMNS}
            for iteration in training.iterations()
            for row in training.reporter.rows(iteration, replay_transitions=training.replay.num_transitions)
            if row.table == "update_log" and row.values["updates"]
        ]


def test_run_takes_the_course_that_was_recorded() -> None:
    # rounding differs between processors and builds of torch, and grows as a run continues
    assert course() == [pytest.approx(row, rel=1e-4, abs=1e-6) for row in json.loads(GOLDEN.read_text())]


ALONE = (
    "toggles.double=true", "toggles.dueling=true", "toggles.prioritized=true", "toggles.n_step=3",
    "learner.loss=mse", "learner.max_grad_norm=1.0", "learner.precision=bf16", "optimizer.kind=adam",
    "optimizer.kind=torch_rmsprop", "env.sticky_probability=0.25", "toggles.noisy=true",
    "toggles.distribution=c51", "toggles.distribution=qr_dqn", "toggles.distribution=iqn",
    "toggles.munchausen=true", "toggles.random_shifts=true",
    "network.kind=data_efficient", "network.kind=dopamine", "network.kind=impala",
)  # fmt: skip


@pytest.mark.thorough  # test_dead_keys, and the families below, guard this in CI
@pytest.mark.parametrize("override", ALONE)
def test_toggle_alone_leaves_the_course_that_was_recorded(override: str) -> None:
    taken, recorded = course(override, "training.total_frames=1_100"), json.loads(GOLDEN.read_text())
    assert len(taken) == 4
    assert taken[-1] != pytest.approx(recorded[3], rel=1e-4, abs=1e-6)


SHIPPED = {
    "DQN": "pong_trackA", "Track B": "pong_trackB", "C51": "c51", "QR-DQN": "qr_dqn",
    "IQN": "iqn", "M-IQN": "m_iqn", "Rainbow": "rainbow", "DER": "atari100k_der",
    "HL-Gauss": "hl_gauss", "BTR+LN": "btr_ln",
    "PQN": "pqn",
}  # fmt: skip
"""The spec in `runs/` of each family of agents."""
SMALLER = {
    "BTR+LN": (
        "env.num_envs=2",
        "learner.update_period_steps=8",
        "network.width=1",
        "network.pool_size=2",
        "training.total_frames=900",  # soon after, rounding decides
    ),
    "PQN": (
        "env.num_envs=4",
        "replay.capacity_steps=32",
        "replay.prefill_steps=32",
        "learner.update_period_steps=4",
        "training.total_frames=820",  # soon after, rounding decides between two actions
    ),
}
"""Further reductions in size."""


def family_course(name: str) -> list[dict[str, float]]:
    """Train the shipped spec of a family, reduced in size, on the toy game; return its trace."""
    tiny_keys = flattened(tomllib.loads(TINY_CATCH.read_text()))
    del tiny_keys["track"], tiny_keys["system.evaluation_video"], tiny_keys["learner.target_period_updates"]
    small = [f"{key}={value}" for key, value in tiny_keys.items()]
    small += ["training.total_frames=1_000", *SMALLER.get(name, ())]
    return course_of(load_spec(RUNS / f"{SHIPPED[name]}.toml", small).spec)


def flattened(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= flattened(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat


AMONG_THE_DEFAULT_TESTS = ("QR-DQN", "M-IQN", "Rainbow")
"""Families without a part in common; the slow tests have the others, and DQN is above."""


@pytest.mark.parametrize(
    "name",
    [
        name if name in AMONG_THE_DEFAULT_TESTS else pytest.param(name, marks=pytest.mark.slow)
        for name in SHIPPED
    ],
)
def test_every_family_of_agents_takes_the_course_that_was_recorded(name: str) -> None:
    recorded = json.loads(FAMILIES.read_text())[name]
    assert family_course(name) == [pytest.approx(row, rel=1e-4, abs=1e-6) for row in recorded]


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    GOLDEN.write_text(json.dumps(course(), indent=2) + "\n")
    FAMILIES.write_text(json.dumps({name: family_course(name) for name in SHIPPED}, indent=2) + "\n")
