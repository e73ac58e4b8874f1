import numpy as np
import pytest
import torch
from tiny import CPU, begun, ticks_of, tiny_spec

from atari_dqn.agent.losses import UPDATE_METRICS as METRICS
from atari_dqn.minibatch import Minibatch
from atari_dqn.telemetry.gates.update_gates import UpdateRecord
from atari_dqn.train import metrics_ring as ring_module
from atari_dqn.train.metrics_ring import RECENT_UPDATES, MetricsRing

BATCH = 2


def write(ring: MetricsRing, *numbers: float) -> None:
    """Write an update for each number, which is its loss, index and weight."""
    for number in numbers:
        metrics = {name: torch.tensor(number if name == "loss" else 0.0) for name in METRICS}
        stacks, values = torch.zeros((BATCH, 1, 1, 1), dtype=torch.uint8), torch.full((BATCH,), float(number))
        batch = Minibatch(
            s_tm1=stacks, a_tm1=values.long(), r_t=values, discount_t=values, s_t=stacks, weight=values,
            index=values.long(),
        )  # fmt: skip
        ring.write(batch, metrics)
    ring.count_updates(len(numbers))


def test_reader_reads_every_update_once_and_in_order() -> None:
    ring = MetricsRing(batch_size=BATCH, device=CPU)
    write(ring, 1, 2)
    reader = ring.reader()
    assert len(reader.arrived()) == 0  # earlier updates belong to another reader
    write(ring, 3, 4)
    write(ring, 5)
    assert reader.arrived()[:, METRICS.index("loss")].tolist() == [3, 4, 5]
    write(ring, 6)
    assert reader.all()[:, 0].tolist() == [6]
    assert len(reader.all()) == 0


def test_rows_are_read_around_the_end_of_the_ring() -> None:
    ring = MetricsRing(batch_size=BATCH, device=CPU)
    reader, seen = ring.reader(), []
    for number in range(RECENT_UPDATES + 50):
        write(ring, number)
        if number % 300 == 0:
            seen += reader.arrived()[:, 0].tolist()
    seen += reader.all()[:, 0].tolist()
    assert seen == list(range(RECENT_UPDATES + 50))


def test_minibatch_of_a_recent_update_is_found_by_how_long_ago_it_was() -> None:
    ring = MetricsRing(batch_size=BATCH, device=CPU)
    assert ring.minibatch(0) is None
    write(ring, *range(RECENT_UPDATES + 5))
    for updates_ago in (0, 7, RECENT_UPDATES - 1):
        index, weight = ring.minibatch(updates_ago)
        assert index.tolist() == weight.tolist() == [RECENT_UPDATES + 4 - updates_ago] * BATCH
    assert ring.minibatch(RECENT_UPDATES) is None


def test_reader_that_was_left_behind_is_a_fault_of_the_caller() -> None:
    ring = MetricsRing(batch_size=BATCH, device=CPU)
    reader = ring.reader()
    write(ring, *range(RECENT_UPDATES + 1))
    with pytest.raises(AssertionError):
        reader.arrived()


def test_iteration_of_more_updates_than_are_remembered_otherwise_is_read_whole() -> None:
    many = RECENT_UPDATES + 24
    ring = MetricsRing(batch_size=BATCH, device=CPU, updates_per_iteration=many)
    reader = ring.reader()
    for iteration in range(3):
        write(ring, *range(iteration * many, (iteration + 1) * many))
        assert reader.arrived()[:, 0].tolist() == list(range(iteration * many, (iteration + 1) * many))


def test_training_remembers_the_updates_of_its_largest_iteration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ring_module, "RECENT_UPDATES", 16)
    spec = tiny_spec("env.num_envs=48", "learner.update_period_steps=2", "replay.capacity_steps=1_000",
                     "replay.prefill_steps=150", "training.total_frames=2_000")  # fmt: skip
    with begun(spec) as training:
        ticks_of(training, 6)
        assert training.clock.updates > 20


def test_numbers_are_kept_as_they_were_measured() -> None:
    ring = MetricsRing(batch_size=BATCH, device=CPU)
    reader = ring.reader()
    write(ring, float("nan"), 2.5)
    np.testing.assert_array_equal(reader.all()[:, 0], np.array([np.nan, 2.5], dtype=np.float32))


def test_gates_are_shown_the_metrics_that_are_declared() -> None:
    assert UpdateRecord._fields == ("update", *METRICS)
