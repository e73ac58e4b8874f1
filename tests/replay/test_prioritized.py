import copy
import math
import os
import threading
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
from chance import p_value
from tapes import drawn_at, make_buffer, play_tape, prioritized, sample_at
from test_buffer import extend, filled
from torch.utils._python_dispatch import TorchDispatchMode
from without_kernels import either_way

__all__ = ["either_way"]
pytestmark = pytest.mark.usefixtures("either_way")


def with_errors(errors, **values):
    """Create a sampler with one index per TD error, each updated once; p^α of index i is |δ|ᵢ^α."""
    sampler = prioritized(**{"capacity": len(errors), "priority_offset": 1e-300} | values)
    indices = torch.arange(len(errors))
    sampler.add(indices)
    sampler.update_priorities(indices, torch.as_tensor(errors, dtype=torch.float32))
    return sampler


def drawn(sampler, batches: int) -> np.ndarray:
    return np.concatenate([drawn_at(sampler, 0)[0].numpy() for _ in range(batches)])


@pytest.mark.fault("D21")
def test_10000_draws_are_proportional_to_priorities() -> None:
    errors = np.arange(1, 41) / 8
    counts = np.bincount(drawn(with_errors(errors, batch_size=100), 100), minlength=40)
    expected = errors**0.6 / (errors**0.6).sum() * 10_000
    assert counts.sum() == 10_000
    # stratified counts vary less than free ones: against those of one draw a batch χ² would be small
    assert p_value(counts, expected) > 0.001


@pytest.mark.fault("D21")
def test_draws_one_at_a_time_are_proportional_to_priorities() -> None:
    errors = np.arange(1, 21) / 8
    counts = np.bincount(drawn(with_errors(errors, batch_size=1), 2_000), minlength=20)
    expected = errors**0.6 / (errors**0.6).sum() * 2_000
    assert 0.001 < p_value(counts, expected) < 0.999


@pytest.mark.fault("D15")
def test_each_stratum_gives_exactly_one_draw_of_every_batch() -> None:
    # 8 strata of the mass, each of 10 indices with the same priority
    sampler = with_errors(np.ones(80), batch_size=8)
    for _ in range(200):
        assert (drawn_at(sampler, 0)[0] // 10).tolist() == [0, 1, 2, 3, 4, 5, 6, 7]


@pytest.mark.fault("D21")
def test_10000_draws_are_proportional_to_priorities_within_each_stratum() -> None:
    # 10 strata of mass 10 each; in every one the indices have 1, 2, 3 and 4 of it
    sampler = with_errors(np.tile([1.0, 2.0, 3.0, 4.0], 10), batch_size=10, alpha=1.0)
    indices = drawn(sampler, 1_000).reshape(1_000, 10) - 4 * np.arange(10)
    for stratum in indices.T:
        assert p_value(np.bincount(stratum, minlength=4), [100, 200, 300, 400]) > 0.001


def test_draws_fill_their_stratum_evenly() -> None:
    # 5,000 equal indices in 50 strata: the position of a draw in its stratum
    indices = drawn(with_errors(np.ones(5_000), batch_size=50), 200)
    assert 0.001 < p_value(np.bincount(indices % 100, minlength=100)) < 0.999


def test_alpha_zero_is_uniform_whatever_the_errors() -> None:
    sampler = with_errors(np.logspace(-6, 6, 40), alpha=0.0, batch_size=3)  # strata end inside indices
    counts = np.bincount(drawn(sampler, 1_000), minlength=40)
    assert 0.001 < p_value(counts) < 0.999
    assert drawn_at(sampler, 0)[1].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.fault("D14")
@pytest.mark.parametrize(("env_frames", "beta"), [(0, 0.4), (500, 0.7), (1_000, 1.0)])
def test_importance_weights_equal_a_float64_reference(env_frames: int, beta: float) -> None:
    errors = np.random.default_rng(0).uniform(0.001, 5, size=100).astype(np.float32)
    sampler = with_errors(errors, priority_offset=1e-6)
    indices, weights = drawn_at(sampler, env_frames)
    probability = (errors.astype(np.float64) + 1e-6) ** 0.6
    probability /= probability.sum()
    reference = (100 * probability) ** -beta
    reference /= reference.max()
    np.testing.assert_allclose(weights.numpy(), reference[indices.numpy()], rtol=1e-6)


@pytest.mark.fault("D14")
def test_weights_are_over_the_largest_of_the_whole_buffer_not_of_the_batch() -> None:
    # the index of the largest weight has 10⁻⁶ of the mass, and no batch here holds it
    sampler = with_errors([1e-6, *[1.0] * 31], alpha=1.0)
    indices, weights = drawn_at(sampler, 1_000)
    assert 0 not in indices
    np.testing.assert_allclose(weights.numpy(), 1e-6, rtol=1e-5)


def test_weights_of_each_minibatch_are_over_its_own_largest_if_chosen() -> None:
    # at β = 1 a weight is in inverse proportion to its priority; the index of 1e-6 is in no minibatch
    sampler = with_errors([1e-6, 2.0, 4.0, 8.0], alpha=1.0, batch_size=3, weights_per_minibatch=True)
    sampler.prepare(1_000)
    unit = torch.tensor([[0.2, 0.2, 0.2], [0.9, 0.9, 0.9]], dtype=torch.float64)
    indices, weights = sampler.indices_and_weights(unit)
    priorities = torch.tensor([[2.0, 4.0, 8.0], [4.0, 8.0, 8.0]])
    assert torch.equal(torch.tensor([1e-6, 2.0, 4.0, 8.0])[indices], priorities)
    torch.testing.assert_close(weights, priorities[:, :1] / priorities)


@pytest.mark.fault("D14")
def test_smallest_priority_counts_no_more_once_its_index_has_left() -> None:
    sampler = with_errors([1e-6, *[1.0] * 31], alpha=1.0)
    sampler.drop(torch.tensor([0]))
    assert drawn_at(sampler, 1_000)[1].tolist() == [1.0] * 32


def test_new_indices_enter_at_the_highest_priority_so_far() -> None:
    sampler = with_errors([4.0, 0.5], capacity=10, alpha=0.5)
    sampler.update_priorities(torch.tensor([0]), torch.tensor([0.25]))
    sampler.add(torch.tensor([5]))
    drawn_at(sampler, 0)
    assert sampler.tree.get(torch.tensor([0, 1, 5])).tolist() == pytest.approx([0.5, math.sqrt(0.5), 2.0])


def test_first_indices_enter_at_priority_one() -> None:
    sampler = prioritized()
    sampler.add(torch.tensor([3, 8]))
    assert sampler.valid_indices().tolist() == [3, 8]
    assert sampler.tree.get(torch.tensor([3, 8, 4])).tolist() == [1.0, 1.0, 0.0]


def test_index_entered_before_an_update_does_not_take_the_updates_priority() -> None:
    sampler = with_errors([1.0], capacity=10)
    sampler.add(torch.tensor([5]))
    sampler.update_priorities(torch.tensor([0]), torch.tensor([9.0]))
    assert sampler.tree.get(torch.tensor([5])).item() == 1.0


def test_index_that_left_and_entered_again_between_draws_can_be_drawn() -> None:
    sampler = with_errors([1.0, 1.0])
    sampler.drop(torch.tensor([1]))
    sampler.add(torch.tensor([1]))
    assert (sampler.valid_indices().tolist(), sampler.count) == ([0, 1], 2)


def test_index_that_entered_and_left_between_draws_cannot_be_drawn() -> None:
    sampler = with_errors([1.0, 1.0], capacity=10)
    sampler.add(torch.tensor([5, 6]))
    sampler.drop(torch.tensor([5]))
    assert (sampler.valid_indices().tolist(), sampler.count) == ([0, 1, 6], 3)


@pytest.mark.fault("D15")
def test_error_of_an_index_that_has_left_does_not_bring_it_back() -> None:
    sampler = with_errors([1.0, 1.0, 1.0])
    sampler.drop(torch.tensor([0]))
    sampler.update_priorities(torch.tensor([0, 1]), torch.tensor([5.0, 2.0]))
    assert sampler.valid_indices().tolist() == [1, 2]
    assert set(drawn(sampler, 50)) == {1, 2}


@pytest.mark.fault("D03")
@pytest.mark.parametrize("error", [math.nan, math.inf])
def test_error_that_is_not_finite_leaves_the_priority_of_its_index_and_the_sampler_sound(
    error: float,
) -> None:
    sampler = with_errors([2.0, 1.0], alpha=1.0)
    sampler.update_priorities(torch.tensor([0, 1]), torch.tensor([error, 0.5]))
    assert sampler.tree.get(torch.tensor([0, 1])).tolist() == [2.0, 0.5]
    sampler.tree.check()
    assert sampler.highest.item() == 2.0


@pytest.mark.parametrize("errors", [[0.5, 3.0, 1.0], [3.0, 0.5, 1.0]])
def test_of_an_index_drawn_twice_the_larger_error_counts(errors: list[float]) -> None:
    sampler = with_errors([2.0, 1.0], alpha=1.0)
    sampler.update_priorities(torch.tensor([0, 0, 1]), torch.tensor(errors))
    assert sampler.tree.get(torch.tensor([0, 1])).tolist() == [3.0, 1.0]


@pytest.mark.parametrize("errors", [[0.5, math.nan, 1.0], [math.inf, 0.5, 1.0]])
def test_of_an_index_drawn_twice_the_finite_error_counts(errors: list[float]) -> None:
    sampler = with_errors([2.0, 1.0], alpha=1.0)
    sampler.update_priorities(torch.tensor([0, 0, 1]), torch.tensor(errors))
    assert sampler.tree.get(torch.tensor([0, 1])).tolist() == [0.5, 1.0]


@pytest.mark.fault("P02")
def test_errors_of_a_million_give_finite_weights() -> None:
    weights = drawn_at(with_errors([1e6, 1e-6, 1.0], priority_offset=1e-6), 1_000)[1]
    assert weights.isfinite().all()
    assert (weights > 0).all()


@pytest.mark.fault("P11")
def test_priorities_and_their_sums_are_in_double_precision() -> None:
    state = prioritized().state_dict()
    assert {level.dtype for level in (*state["tree"]["sums"], state["highest"])} == {torch.float64}


def test_dropping_more_than_there_is_is_a_fault_of_the_caller() -> None:
    with pytest.raises(AssertionError):
        with_errors([1.0]).drop(torch.tensor([0, 0]))


def test_drawing_from_an_empty_prioritized_sampler_is_a_fault_of_the_caller() -> None:
    with pytest.raises(AssertionError, match="nothing to draw"):
        drawn_at(prioritized(), 0)


@pytest.mark.fault("D15")
@pytest.mark.parametrize("steps", [9, 40, 75])
def test_reset_rows_and_rows_without_whole_stack_or_window_have_priority_zero(steps: int) -> None:
    tape = "ABCDEFG|HIJK/LMNOPQRSTUVWXYZ" * 3
    buffer = make_buffer(capacity=20, n_step=3, sampler=prioritized, batch_size=200)
    play_tape(buffer, tape[:steps])
    found = set(sample_at(buffer, 0).index.tolist())
    priorities = buffer.sampler.tree.get(torch.arange(buffer.ring.zero_index))
    listed = set(buffer.sampler.valid_indices().tolist())
    assert {index for index, priority in enumerate(priorities.tolist()) if priority} == listed >= found
    assert listed <= set(torch.nonzero(buffer.ring.is_step).flatten().tolist())


class CountedCalls(TorchDispatchMode):
    """Counts the operations that torch dispatches."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.calls[str(function)] += 1
        return function(*args, **(kwargs or {}))


def calls_for(batch_size: int) -> Counter[str]:
    sampler = with_errors(np.arange(1, 5_001) / 1_000, batch_size=batch_size)
    with CountedCalls() as counted:
        indices, _ = drawn_at(sampler, 0)
        sampler.update_priorities(indices, torch.ones(batch_size))
    return counted.calls


def test_draw_and_update_ask_for_as_many_kernels_whatever_the_batch_size() -> None:
    calls = calls_for(1)
    assert calls == calls_for(512)
    assert sum(calls.values()) < 200


@pytest.mark.parametrize("steps", [12, 70])
def test_loaded_prioritized_replay_goes_on_as_the_saved_one_would(steps: int) -> None:
    shape = {"capacity": 20, "n_step": 3, "stack": 4, "sampler": prioritized}
    saved = filled(steps, **shape)
    learn(saved, rounds=5)
    extend(saved, [steps + 1])  # an index is pending
    loaded = make_buffer(frame_shape=(1, 2), seed=99, **shape)
    loaded.load_state_dict(copy.deepcopy(saved.state_dict()))
    histories = []
    for buffer in (saved, loaded):
        history = []
        for number in range(steps + 2, steps + 40):
            extend(buffer, [number])
            buffer.check()
            history += learn(buffer, rounds=1)
        histories.append(history)
    assert histories[0] == histories[1]
    trees = [buffer.sampler.state_dict()["tree"]["sums"] for buffer in (saved, loaded)]
    assert all(torch.equal(one, other) for one, other in zip(*trees, strict=True))


def learn(buffer, *, rounds: int) -> list[object]:
    """Sample minibatches, update their priorities with different errors, and return indices and weights."""
    history: list[object] = []
    for _ in range(rounds):
        found = sample_at(buffer, 300)
        buffer.update_priorities(found, (found.index * 7 % 11) * 0.1)
        history += [found.index.tolist(), found.weight.tolist()]
    return history


@pytest.mark.fault("M04")
def test_errors_that_come_after_the_next_row_was_stored_are_refused() -> None:
    buffer = filled(12, capacity=20, sampler=prioritized)
    found = sample_at(buffer, 0)
    extend(buffer, [13])
    with pytest.raises(AssertionError, match="has stored a row since"):
        buffer.update_priorities(found, torch.ones(32))


def test_when_indices_enter_in_the_tree_changes_no_bit() -> None:
    buffers = [filled(3, capacity=20, sampler=prioritized) for _ in range(2)]
    for number in range(4, 60):
        for place, buffer in enumerate(buffers):
            extend(buffer, [number])
            if place:
                buffer.sampler.valid_indices()  # applies pending changes at every step
            if number % 4 == 0:
                learn(buffer, rounds=1)
    trees = [buffer.sampler.state_dict()["tree"]["sums"] for buffer in buffers]
    assert all(torch.equal(one, other) for one, other in zip(*trees, strict=True))
    assert learn(buffers[0], rounds=3) == learn(buffers[1], rounds=3)


@pytest.mark.fault("M04")
def test_replay_of_a_real_run_has_one_writer_and_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    from tiny import begun, ticks_of, tiny_spec

    spec = tiny_spec("toggles.prioritized=true", "env.num_envs=3", "system.workers=1")
    callers: set[tuple[int, int]] = set()
    names: list[str] = []
    with begun(spec) as training:
        for name in ("append", "sample", "update_priorities"):
            method = getattr(training.replay, name)

            def noted(*values, name=name, method=method):
                callers.add((os.getpid(), threading.get_ident()))
                names.append(name)
                return method(*values)

            monkeypatch.setattr(training.replay, name, noted)
        ticks_of(training, 60)
    assert callers == {(os.getpid(), threading.get_ident())}
    assert names.count("sample") > 20
    assert all(after == "update_priorities" for before, after in pairwise(names) if before == "sample")
