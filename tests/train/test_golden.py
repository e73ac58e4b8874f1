"""A fixed run's course. A change of speed or style leaves it; a change of algorithm moves it, with a reason.

To write it anew: `python tests/train/test_golden.py`.
"""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from tiny import begun, tiny_spec

from atari_dqn.train.loop import q_learning

GOLDEN = Path(__file__).with_name("golden_catch.json")
COLUMNS = ("step", "updates", "loss", "mean_q", "max_q", "grad_norm", "rolling_return", "epsilon")


def course() -> list[dict[str, float]]:
    """Return rows of update_log from the first with an update on."""
    with begun(tiny_spec("training.total_frames=1_400")) as training:
        return [
            {name: row.values[name] for name in COLUMNS}
            for tick in q_learning(training)
            for row in training.reporter.rows(tick, replay_transitions=training.replay.num_transitions)
            if row.table == "update_log" and row.values["updates"]
        ]


def test_run_takes_the_course_that_was_recorded() -> None:
    # rounding differs between processors and builds of torch, and grows as a run goes on
    assert course() == [pytest.approx(row, rel=1e-4, abs=1e-6) for row in json.loads(GOLDEN.read_text())]


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    GOLDEN.write_text(json.dumps(course(), indent=2) + "\n")
