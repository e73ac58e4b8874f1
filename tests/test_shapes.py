import pytest
import shapes
import torch
from jaxtyping import TypeCheckError

from atari_dqn.agent import rules
from atari_dqn.agent.heads import LinearHead
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.torsos import NatureTorso
from atari_dqn.minibatch import Minibatch
from atari_dqn.replay.ring import FrameRing
from atari_dqn.replay.uniform import UniformSampler

CPU = torch.device("cpu")


def test_right_shapes_pass():
    target = rules.bellman_target(torch.ones(3), torch.zeros(3), torch.zeros(3, 1))
    assert target.tolist() == [[1.0], [1.0], [1.0]]


@pytest.mark.parametrize(
    ("r_t", "discount_t", "z_t"),
    [
        (torch.zeros(3), torch.zeros(1), torch.zeros(3, 4)),  # would broadcast
        (torch.zeros(3), torch.zeros(3), torch.zeros(4, 3)),
        (torch.zeros(3, 1), torch.zeros(3, 1), torch.zeros(3, 4)),
        (torch.zeros(3, dtype=torch.int64), torch.zeros(3), torch.zeros(3, 4)),
    ],
)
def test_wrong_shape_or_dtype_in_a_learning_rule_is_caught(r_t, discount_t, z_t):
    with pytest.raises(TypeCheckError):
        rules.bellman_target(r_t, discount_t, z_t)


@pytest.mark.parametrize("calls_before", [0, shapes.FIRST_CALLS - 1, 15])
def test_wrong_shape_is_caught_among_the_first_calls_and_now_and_then(calls_before):
    for _ in range(calls_before):
        rules.bellman_target(torch.ones(3), torch.zeros(3), torch.zeros(3, 1))
    with pytest.raises(TypeCheckError):
        rules.bellman_target(torch.ones(3), torch.zeros(1), torch.zeros(3, 1))


def test_most_of_many_calls_are_not_looked_at():
    for _ in range(shapes.FIRST_CALLS):
        rules.bellman_target(torch.ones(3), torch.zeros(3), torch.zeros(3, 1))
    assert rules.bellman_target(torch.ones(3), torch.zeros(1), torch.zeros(3, 1)).shape == (3, 1)


def test_wrong_cells_in_the_replay_are_caught():
    ring = FrameRing(rows=4, num_envs=2, frame_shape=(8, 8), stack=2, device=CPU)
    with pytest.raises(TypeCheckError):
        ring.stacks(torch.zeros((2, 2), dtype=torch.int64))


def test_wrong_shapes_inside_a_returned_tuple_are_caught(monkeypatch):
    sampler = UniformSampler(capacity=4, batch_size=2, seed=0, device=CPU)
    sampler.add(torch.arange(3))
    sampler.prepare(0)
    sampler.draw()
    cells, weights = torch.zeros((1, 2), dtype=torch.int64), torch.ones(1, 3)
    monkeypatch.setattr(sampler, "indices_and_weights", lambda unit: (cells, weights))
    with pytest.raises(TypeCheckError):
        sampler.draw()


def test_whole_numbers_where_a_network_expects_pixels_are_caught():
    network = QNetwork(NatureTorso(stack=4, frame_shape=(36, 36)), LinearHead(512, 3), precision="fp32")
    with pytest.raises(TypeCheckError):
        network(torch.zeros(2, 4, 36, 36, dtype=torch.int64))


def make_minibatch(rewards: int) -> Minibatch:
    stacks = torch.zeros((2, 4, 8, 8), dtype=torch.uint8)
    ones, cells = torch.ones(2), torch.zeros(2, dtype=torch.int64)
    return Minibatch(
        s_tm1=stacks,
        a_tm1=cells,
        r_t=torch.ones(rewards),
        discount_t=ones,
        s_t=stacks,
        weight=ones,
        index=cells,
    )


@pytest.mark.fault("P09")
def test_minibatch_of_unequal_columns_is_caught():
    with pytest.raises(TypeCheckError):
        make_minibatch(rewards=3)


def test_most_of_many_minibatches_are_not_looked_at():
    for _ in range(shapes.FIRST_CALLS):
        make_minibatch(rewards=2)
    assert make_minibatch(rewards=3).r_t.shape == (3,)
