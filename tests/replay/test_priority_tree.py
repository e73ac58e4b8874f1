import math

import numpy as np
import pytest
import torch
from tapes import CPU

from atari_dqn.fast.cpu.library import library
from atari_dqn.fast.cpu.priority_tree import KernelTree
from atari_dqn.replay.priority_tree import PriorityTree

KINDS = [PriorityTree, *([KernelTree] if library("portable") is not None else [])]


@pytest.fixture(params=KINDS, autouse=True)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test each implementation of the tree: plain PyTorch, and kernels if they were built."""
    monkeypatch.setitem(globals(), "tree_kind", request.param)


tree_kind = PriorityTree

CAPACITIES = [(1, 2), (2, 2), (7, 2), (33, 4), (100, 7), (1_000, 32), (1_025, 32)]
"""Capacities and fan-outs; most capacities are no power of their fan-out."""


def make_tree(capacity: int, fan_out: int = 32) -> PriorityTree:
    return tree_kind(capacity, device=CPU, fan_out=fan_out)


def filled(priorities, fan_out: int = 4) -> PriorityTree:
    tree = make_tree(len(priorities), fan_out)
    tree.set(torch.arange(len(priorities)), torch.as_tensor(priorities, dtype=torch.float64))
    return tree


def draws(seed: int, capacity: int, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw indices, some repeated, and for each a priority of any magnitude, a third of them 0."""
    stream = np.random.default_rng(seed)
    indices = stream.integers(capacity, size=count)
    by_index = 10 ** stream.uniform(-6, 3, size=capacity) * (stream.random(capacity) > 1 / 3)
    return torch.from_numpy(indices), torch.from_numpy(by_index[indices])


@pytest.mark.parametrize(("capacity", "fan_out"), CAPACITIES)
def test_every_node_is_sum_and_minimum_of_its_children_after_each_change(capacity: int, fan_out: int) -> None:
    tree = make_tree(capacity, fan_out)
    for seed in range(30):
        tree.set(*draws(seed, capacity, 40))
        tree.check()


@pytest.mark.parametrize(("capacity", "fan_out"), CAPACITIES)
def test_total_and_smallest_are_those_of_all_leaves(capacity: int, fan_out: int) -> None:
    tree, leaves = make_tree(capacity, fan_out), np.zeros(capacity)
    for seed in range(30):
        indices, priorities = draws(seed, capacity, 40)
        tree.set(indices, priorities)
        leaves[indices] = priorities
        assert tree.get(torch.arange(capacity)).tolist() == leaves.tolist()
        assert tree.total.item() == pytest.approx(leaves.sum(), rel=1e-14)
        assert tree.smallest.item() == leaves[leaves > 0].min(initial=np.inf)


def test_check_fails_where_a_sum_is_off_by_one_bit() -> None:
    tree = filled(np.linspace(1, 2, 20))
    tree.sums[1][2] = torch.nextafter(tree.sums[1][2], torch.tensor(0.0, dtype=torch.float64))
    with pytest.raises(AssertionError):
        tree.check()


def test_index_named_twice_with_two_values_has_one_of_them_everywhere() -> None:
    tree = make_tree(40)
    tree.set(torch.tensor([7, 7, 3]), torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64))
    tree.check()
    assert tree.get(torch.tensor([7])).item() in (1.0, 2.0)


@pytest.mark.parametrize(("capacity", "fan_out"), CAPACITIES)
def test_find_agrees_with_the_running_sum_of_all_leaves(capacity: int, fan_out: int) -> None:
    tree = make_tree(capacity, fan_out)
    priorities = np.random.default_rng(0).integers(0, 9, size=capacity) / 8  # sums of eighths are exact
    priorities[-1] = 1.0
    tree.set(torch.arange(capacity), torch.from_numpy(priorities))
    running = priorities.cumsum()
    # every edge between two indices, and points inside
    mass = np.concatenate([[0.0], running[:-1], np.linspace(0, running[-1], 500, endpoint=False)])
    found = tree.find(torch.from_numpy(mass)).numpy()
    assert found.tolist() == np.searchsorted(running, mass, side="right").tolist()


@pytest.mark.parametrize("seed", range(20))
def test_find_passes_over_indices_of_priority_zero_also_at_the_end_of_the_mass(seed: int) -> None:
    # thirds round in every sum; the last indices with priority are followed by empty ones
    stream = np.random.default_rng(seed)
    priorities = stream.random(1_000) / 3 * (stream.random(1_000) > 0.7)
    priorities[stream.integers(100, 1_000) :] = 0.0
    tree = filled(priorities, fan_out=[2, 4, 32][seed % 3])
    total = tree.total
    near_the_end = [total * (1 - 2.0**-power) for power in range(1, 60)]
    mass = torch.stack([*near_the_end, total, total * (1 + 1e-15), torch.zeros_like(total)])
    found = tree.find(torch.cat([mass, torch.from_numpy(priorities.cumsum())]))
    assert (tree.get(found) > 0).all()


def test_find_gives_a_mass_past_every_node_to_the_last_index_with_priority() -> None:
    tree = filled([0.1, 0.2, 0.3, 0.0, 0.0, 0.1, 0.0, 0.0, 0.0])
    assert tree.find(tree.total[None]).tolist() == [5]
    assert tree.find(torch.tensor([1e9], dtype=torch.float64)).tolist() == [5]


def test_find_agrees_with_a_million_leaves_in_double_precision() -> None:
    priorities = np.random.default_rng(0).random(1_000_000)
    tree = make_tree(1_000_000)
    tree.set(torch.arange(1_000_000), torch.from_numpy(priorities))
    running = priorities.cumsum()
    mass = np.random.default_rng(1).random(10_000) * running[-1]
    found = tree.find(torch.from_numpy(mass)).numpy()
    # running sums in another order differ by some 1e-10 of a leaf
    assert np.abs(found - np.searchsorted(running, mass, side="right")).max() == 0


@pytest.mark.fault("P11")
def test_sums_do_not_drift_over_100000_changes() -> None:
    tree, stream = make_tree(1_000), np.random.default_rng(0)
    for _ in range(1_000):
        indices = torch.from_numpy(stream.permutation(1_000)[:100])
        tree.set(indices, torch.from_numpy(10 ** stream.uniform(-9, 9, size=100)))
    again = filled(tree.get(torch.arange(1_000)).numpy(), fan_out=32)
    assert [level.tolist() for level in tree.sums] == [level.tolist() for level in again.sums]


@pytest.mark.fault("P11")
def test_small_priorities_next_to_large_ones_are_kept() -> None:
    # in fp32 the sum of 2²⁴ and 1 is 2²⁴
    tree = filled([2.0**24, 1.0, 1.0], fan_out=2)
    assert tree.total.item() == 2**24 + 2
    assert tree.find(torch.tensor([2.0**24 + 1.5], dtype=torch.float64)).tolist() == [2]


def test_empty_tree_has_no_mass_and_no_smallest_priority() -> None:
    tree = make_tree(100)
    assert (tree.total.item(), tree.smallest.item(), tree.positive().tolist()) == (0.0, float("inf"), [])


def test_indices_taken_out_do_not_count_for_the_smallest() -> None:
    tree = filled([0.25, 0.5, 1.0])
    tree.set(torch.tensor([0]), torch.zeros(1, dtype=torch.float64))
    assert tree.smallest.item() == 0.5


def test_loaded_tree_is_the_saved_one_to_the_bit() -> None:
    saved = make_tree(1_025)
    for seed in range(20):
        saved.set(*draws(seed, 1_025, 60))
    loaded = filled(np.ones(1_025), fan_out=32)
    loaded.load_state_dict(saved.state_dict())
    loaded.check()
    for name in ("sums", "minima"):
        pairs = zip(getattr(saved, name), getattr(loaded, name), strict=True)
        assert all(torch.equal(one, other) for one, other in pairs)


@pytest.mark.parametrize("index", [-1, 64])
def test_index_that_is_none_of_the_trees_is_refused_and_nothing_changes(index: int) -> None:
    tree = filled(np.ones(40), fan_out=32)
    with pytest.raises(IndexError):
        tree.set(torch.tensor([3, index]), torch.full((2,), 5.0, dtype=torch.float64))
    assert tree.total.item() == 40


def refused(*changes: tuple[int, int, float]) -> str:
    """Return the error of a state of 40 priorities after adding numbers at places of its levels."""
    state = filled(np.ones(40)).state_dict()  # levels of 40, 10, 3 and 1, padded to 40, 12, 4 and 1
    for level, place, change in changes:
        state["sums"][level][place] += change
    with pytest.raises(ValueError, match="tree") as caught:
        make_tree(40, fan_out=4).load_state_dict(state)
    return str(caught.value)


@pytest.mark.parametrize("change", [-2.0, math.nan, math.inf])
def test_state_with_an_invalid_priority_is_refused(change: float) -> None:
    assert "expected priorities of 0 or more" in refused((0, 7, change))


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_state_with_a_sum_that_is_not_that_of_its_children_is_refused(level: int) -> None:
    assert "a sum is not that of its children" in refused((level, 0, 1.0))


def test_state_with_priorities_in_the_padding_of_a_level_is_refused() -> None:
    assert "a sum is not that of its children" in refused((1, 11, 1.0), (2, 2, 1.0), (3, 0, 1.0))
