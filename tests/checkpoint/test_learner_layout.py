"""The check of a loaded learner knows the averages of an optimizer by the optimizer itself."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from atari_dqn.agent.optimizers import adam, deepmind_rmsprop, radam, torch_rmsprop
from atari_dqn.errors import DamagedError
from atari_dqn.run.checkpoint.learner_layout import check_learner
from atari_dqn.types import StateDict

PATH = Path("agent.pt")
VALUES = {
    "learning_rate": 0.001, "epsilon": 0.01, "beta1": 0.9, "beta2": 0.99, "gradient_decay": 0.9,
    "squared_gradient_decay": 0.9, "smoothing": 0.9, "momentum": 0.0,
}  # fmt: skip


class Lion(Optimizer):
    """An optimizer that has an option of Adam's, and one average of its own."""

    def __init__(self, parameters: Iterable[nn.Parameter], **_: float) -> None:
        super().__init__(parameters, {"lr": 0.1, "betas": (0.9, 0.99)})

    def step(self, closure: Any = None) -> None:
        """Set the average to the gradient."""
        del closure
        for weight in self.param_groups[0]["params"]:
            self.state[weight]["momentum"] = weight.grad.clone()


def states(make: Callable[..., Optimizer]) -> tuple[StateDict, StateDict]:
    """Return the state of a learner after a step, and that of a new one."""
    network = nn.Linear(2, 2)
    optimizer = make(network.parameters(), **VALUES)
    new = optimizer.state_dict()
    network(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    online: dict[str, Tensor] = dict(network.state_dict())
    return {"online": online, "optimizer": optimizer.state_dict()}, {"online": online, "optimizer": new}


def test_optimizer_with_averages_of_its_own_is_accepted() -> None:
    check_learner(PATH, *states(Lion))


@pytest.mark.parametrize("make", [adam, radam, deepmind_rmsprop, torch_rmsprop])
def test_missing_average_is_refused(make: Callable[..., Optimizer]) -> None:
    saved, new = states(make)
    check_learner(PATH, saved, new)
    of_weight = saved["optimizer"]["state"][0]
    saved["optimizer"]["state"][0] = dict(list(of_weight.items())[:1])
    with pytest.raises(DamagedError, match="expected"):
        check_learner(PATH, saved, new)
