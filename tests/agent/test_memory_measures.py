import pytest
import torch
from sequences import make_recurrent_network, make_sequences
from torch import Tensor

from atari_dqn.agent.unroll import UnrollMemory
from atari_dqn.train.memory_measures import Staleness, StepErrors, largest_q, state_norm


def test_state_norm_is_that_of_the_state_after_the_last_frame() -> None:
    network, batch = make_recurrent_network(units=8), make_sequences(width=16)
    with torch.no_grad():
        state = UnrollMemory().burned_in(network, batch)
        for place in range(3, 9):  # the five steps and the last frame, after a burn-in of three
            frame, action, reward = (
                column[:, place : place + 1]
                for column in (batch.frames, batch.last_action, batch.last_reward)
            )
            _, state = network.unroll(frame, action, reward, state)
        whole = state[:3].norm(dim=1)  # the fourth sequence is shorter
        found = state_norm(network, network, batch)["state_norm"]
    assert found.item() == pytest.approx(whole.mean().item(), rel=1e-5)


class FixedErrors:
    """A loss whose TD errors are known."""

    def __init__(self, td_error: Tensor) -> None:
        self.td_error = td_error

    def td_errors(self, *_: object) -> tuple[None, Tensor]:
        return None, self.td_error


def test_early_and_late_errors_are_those_of_the_first_and_last_quarter() -> None:
    mask = torch.ones(2, 8, dtype=torch.bool)
    mask[1, 7] = False
    batch = make_sequences(2, steps=8, mask=mask)  # the first one begins its episode
    error = torch.tensor([[9.0] * 8, [1.0, -3.0, 7.0, 7.0, 7.0, 7.0, -0.5, 7.0]])
    network = make_recurrent_network()
    found = StepErrors(FixedErrors(error))(network, network, batch)  # type: ignore[arg-type]
    assert {name: value.item() for name, value in found.items()} == {
        "early_td_error": 2.0,
        "late_td_error": 0.5,
    }


def staleness(states: Tensor, exists: Tensor) -> dict[str, float]:
    network, batch = make_recurrent_network(units=8), make_sequences(width=16, steps=5)
    measure = Staleness(lambda _: (states, exists), (0, 2))
    with torch.no_grad():
        return {name: value.item() for name, value in measure(network, network, batch).items()}


def states_of_learning() -> Tensor:
    """Return the states at the frames 0 and 2 after the burn-in, as learning has them."""
    network, batch = make_recurrent_network(units=8), make_sequences(width=16, steps=5)
    with torch.no_grad():
        first = UnrollMemory().burned_in(network, batch)
        _, third = network.unroll(
            batch.frames[:, 3:5], batch.last_action[:, 3:5], batch.last_reward[:, 3:5], first
        )
    return torch.stack([first, third], dim=1)


def test_states_of_the_same_weights_are_not_stale() -> None:
    found = staleness(states_of_learning(), torch.ones(4, 2, dtype=torch.bool))
    assert found == {"first_delta_q": pytest.approx(0, abs=1e-5), "last_delta_q": pytest.approx(0, abs=1e-5)}


def test_delta_q_is_the_distance_of_q_values_in_shares_of_the_largest() -> None:
    network, batch = make_recurrent_network(units=8), make_sequences(width=16, steps=5)
    states = states_of_learning()
    states[1, 1] += 1.0
    exists = torch.zeros(4, 2, dtype=torch.bool)
    exists[1] = True
    with torch.no_grad():
        q = UnrollMemory().q_values(network, batch)[1]
        stale, _ = network.unroll(
            batch.frames[1:2, 5:6], batch.last_action[1:2, 5:6], batch.last_reward[1:2, 5:6], states[1:2, 1]
        )
    found = staleness(states, exists)
    expected = float((q[2] - stale[0, 0]).norm() / abs(q.max()))
    assert found["last_delta_q"] == pytest.approx(expected, rel=1e-4)
    assert found["first_delta_q"] == pytest.approx(0, abs=1e-5)
    assert expected > 0.01


def test_largest_q_is_of_the_frames_up_to_the_end_of_the_episode() -> None:
    q = torch.tensor([[[1.0, 2.0], [4.0, 3.0], [9.0, 9.0]], [[-3.0, -2.0], [-5.0, -4.0], [-1.0, -6.0]]])
    mask = torch.tensor([[True, False], [True, True]])
    assert largest_q(q, mask).tolist() == [4.0, -1.0]


def test_last_delta_q_is_that_of_the_last_state_that_exists() -> None:
    states, exists = states_of_learning(), torch.zeros(4, 2, dtype=torch.bool)
    states[:, 0] += 1.0
    exists[2, 0] = True
    found = staleness(states, exists)
    assert found["last_delta_q"] == found["first_delta_q"] > 0.01
