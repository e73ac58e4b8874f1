import numpy as np
import pytest
import torch

from atari_dqn.run.checkpoint.state_tree import leaves, map_leaves, tree_digest

TREE = {
    "clock": {"steps": 10, "updates": 3},
    "mean": np.array([1.0, 2.0], dtype=np.float32),
    "weights": torch.arange(6).reshape(2, 3),
    "recent": [[1.5, 20]],
    "empty": {},
    "stream": "PCG64",
}


def changed(**parts) -> str:
    return tree_digest(TREE | parts)


def test_leaves_have_dotted_paths() -> None:
    assert [path for path, _ in leaves(TREE)] == [
        "clock.steps", "clock.updates", "mean", "weights", "recent.0.0", "recent.0.1", "empty", "stream",
    ]  # fmt: skip


def test_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert tree_digest(dict(reversed(TREE.items()))) == tree_digest(TREE)


@pytest.mark.parametrize(
    "parts",
    [
        {"clock": {"steps": 11, "updates": 3}},
        {"clock": {"steps": 3, "updates": 10}},
        {"mean": np.array([1.0, np.nextafter(np.float32(2), np.float32(3))], dtype=np.float32)},
        {"mean": np.array([1.0, 2.0])},
        {"mean": np.array([[1.0, 2.0]], dtype=np.float32)},
        {"mean": np.array([2.0, 1.0], dtype=np.float32)},
        {"weights": torch.arange(6).reshape(3, 2)},
        {"recent": [[1.5, 21]]},
        {"recent": []},
        {"empty": None},
        {"empty": []},
        {"stream": "PCG65"},
        {"more": 0},
    ],
)
def test_digest_changes_with_every_leaf(parts) -> None:
    assert changed(**parts) != tree_digest(TREE)


def test_digest_is_of_values_and_not_of_their_place_in_memory() -> None:
    transposed = torch.arange(6).reshape(2, 3).t().contiguous().t()
    assert changed(weights=transposed) == tree_digest(TREE)


def test_digest_of_an_array_is_that_of_an_equal_tensor() -> None:
    assert changed(mean=torch.tensor([1.0, 2.0])) == tree_digest(TREE)


def test_digest_of_nan_is_its_own() -> None:
    assert tree_digest({"a": float("nan")}) == tree_digest({"a": float("nan")}) != tree_digest({"a": 0.0})


def test_mapping_the_leaves_keeps_the_tree() -> None:
    assert map_leaves({"a": [1, (2, 3)], "b": {}}, lambda path, leaf: (path, leaf)) == {
        "a": [("a.0", 1), [("a.1.0", 2), ("a.1.1", 3)]],
        "b": ("b", {}),
    }
