"""A target network that moves by τ, and the number of updates that are taken together."""

import torch
from parts import make_batch, make_learner, make_network

from atari_dqn.agent.learner import Learner, move_towards

RATE = 0.005


def averaging(learner: Learner, **values) -> Learner:
    return Learner(
        online=learner.online,
        target=learner.target,
        optimizer=learner.optimizer,
        loss=learner.loss,
        reduction="sum",
        accumulate=1,
        max_grad_norm=float("inf"),
        generator=learner.generator,
        **{"target_period_updates": 1, "target_rate": RATE} | values,
    )


def test_target_moves_by_the_rate_in_double_precision() -> None:
    target, online = make_network(seed=1), make_network(seed=2)
    expected = [
        (1 - RATE) * old.detach().double() + RATE * new.detach().double()
        for old, new in zip(target.parameters(), online.parameters(), strict=True)
    ]
    move_towards(target, online, RATE)
    for weight, reference in zip(target.parameters(), expected, strict=True):
        torch.testing.assert_close(weight.detach().double(), reference, rtol=0, atol=1e-7)


def test_target_begins_as_a_copy_and_follows_after_each_update() -> None:
    learner = averaging(make_learner())
    before = learner.target.head.output.weight.clone()
    assert torch.equal(before, learner.online.head.output.weight)
    learner.update(make_batch())
    moved = learner.target.head.output.weight - before
    apart = learner.online.head.output.weight.detach() - before
    torch.testing.assert_close(moved, RATE * apart, rtol=1e-3, atol=1e-8)
    assert moved.any()


def test_target_moves_at_each_period_only() -> None:
    learner = averaging(make_learner(), target_period_updates=2)
    before = learner.target.head.output.weight.clone()
    learner.update(make_batch())
    assert torch.equal(learner.target.head.output.weight, before)
    learner.update(make_batch())
    assert not torch.equal(learner.target.head.output.weight, before)


class Due:
    """Work that is due after every third update."""

    def __init__(self) -> None:
        self.done: list[int] = []

    def updates_until(self, updates: int) -> int:
        return 3 - updates % 3

    def after(self, updates: int) -> None:
        if updates % 3 == 0:
            self.done.append(updates)


def test_updates_are_taken_together_until_the_first_work_and_each_work_is_done() -> None:
    work = Due()
    learner = averaging(make_learner(), target_period_updates=5, upkeep=[work])
    taken = []
    while learner.updates < 9:
        taken.append(learner.updates_before_work)
        learner.count_updates(taken[-1])
    assert (taken, work.done) == ([3, 2, 1, 3], [3, 6, 9])
