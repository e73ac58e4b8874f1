import pytest
import torch
from tapes import Transition, make_buffer, play_tape, sample_at, transitions

from atari_dqn.agent.rules import mse

REWARDS = {"B": 1.0, "C": 2.0, "D": 4.0, "E": 8.0, "F": 16.0}


def test_one_step_transition_is_reward_discount_and_next_stack() -> None:
    found = transitions(play_tape(make_buffer(gamma=0.5), "ABCD", REWARDS))
    assert found["B"] == Transition(s_tm1="··AB", action=2, r_t=2.0, discount_t=0.5, s_t="·ABC")


@pytest.mark.fault("W01")
def test_three_step_window_inside_an_episode() -> None:
    found = transitions(play_tape(make_buffer(n_step=3), "ABCDE", REWARDS))
    # 1 + ½·2 + ¼·4
    assert found["A"] == Transition(s_tm1="···A", action=1, r_t=3.0, discount_t=0.125, s_t="ABCD")


@pytest.mark.fault("D21")
def test_window_that_ends_with_the_game_does_not_bootstrap() -> None:
    found = transitions(play_tape(make_buffer(n_step=3), "ABCD|EFGH", REWARDS))
    assert (found["B"].r_t, found["B"].discount_t) == (2.0 + 0.5 * 4.0, 0.0)


def test_last_transitions_before_the_end_of_a_game_are_kept() -> None:
    found = transitions(play_tape(make_buffer(n_step=3), "ABCD|EFGHI"))
    assert list(found) == ["A", "B", "C", "E", "F"]


def test_truncated_window_bootstraps_from_the_final_frame() -> None:
    found = transitions(play_tape(make_buffer(n_step=3), "ABCD/EFGH", REWARDS))
    # from B: 2 + ½·4, then the value of D, two steps on
    assert found["B"] == Transition(s_tm1="··AB", action=2, r_t=4.0, discount_t=0.25, s_t="ABCD")


def test_last_transition_before_a_truncation_spans_one_step() -> None:
    found = transitions(play_tape(make_buffer(n_step=3), "ABCD/EFGH", REWARDS))
    assert found["C"] == Transition(s_tm1="·ABC", action=3, r_t=4.0, discount_t=0.5, s_t="ABCD")


def test_window_is_cut_by_a_lost_life() -> None:
    found = transitions(play_tape(make_buffer(n_step=3), "ABC!DEFG", REWARDS))
    assert (found["A"].r_t, found["A"].discount_t) == (1.0 + 0.5 * 2.0, 0.0)


def test_transitions_continue_after_a_lost_life() -> None:
    found = transitions(play_tape(make_buffer(n_step=3), "ABC!DEFG", REWARDS))
    # from C: 4 + ½·8 + ¼·16
    assert found["C"] == Transition(s_tm1="·ABC", action=3, r_t=12.0, discount_t=0.125, s_t="CDEF")


def test_last_frame_of_an_episode_starts_no_transition() -> None:
    assert "D" not in transitions(play_tape(make_buffer(), "ABCD|EFGH"))
    assert "D" not in transitions(play_tape(make_buffer(), "ABCD/EFGH"))


@pytest.mark.parametrize(("n_step", "last"), [(1, "F"), (2, "E"), (5, "B")])
def test_no_window_reaches_past_the_newest_frame(n_step: int, last: str) -> None:
    assert list(transitions(play_tape(make_buffer(n_step=n_step), "ABCDEFG")))[-1] == last


def test_no_window_crosses_from_the_newest_to_the_oldest_row() -> None:
    buffer = make_buffer(capacity=3, n_step=2)  # 3 + 3 + 2 = 8 rows
    found = transitions(play_tape(buffer, "ABCDEFGHIJKL"))
    assert [(name, value.s_tm1, value.s_t) for name, value in found.items()] == [
        ("H", "EFGH", "GHIJ"),
        ("I", "FGHI", "HIJK"),
        ("J", "GHIJ", "IJKL"),
    ]


def test_rewards_are_clipped_one_by_one_before_they_are_summed() -> None:
    buffer = make_buffer(n_step=2, gamma=0.5, max_abs_reward=1.0)
    found = transitions(play_tape(buffer, "ABC", {"B": 7.0, "C": -5.0}))
    assert found["A"].r_t == 1.0 - 0.5


def test_max_abs_reward_bounds_the_stored_rewards() -> None:
    buffer = make_buffer(max_abs_reward=3.0)
    found = transitions(play_tape(buffer, "ABC", {"B": 7.0, "C": -2.0}))
    assert (found["A"].r_t, found["B"].r_t) == (3.0, -2.0)


@pytest.mark.fault("P02")
def test_unclipped_rewards_of_a_million_are_kept() -> None:
    buffer = make_buffer(max_abs_reward=float("inf"))
    found = transitions(play_tape(buffer, "ABC", {"B": 1e6, "C": -1e6}))
    assert (found["A"].r_t, found["B"].r_t) == (1e6, -1e6)


def test_gamma_zero_disables_bootstrapping() -> None:
    found = transitions(play_tape(make_buffer(gamma=0.0, n_step=3), "ABCDE", REWARDS))
    assert (found["A"].r_t, found["A"].discount_t) == (1.0, 0.0)


def test_discount_one_sums_rewards() -> None:
    found = transitions(play_tape(make_buffer(gamma=1.0, n_step=3), "ABCDE", REWARDS))
    assert (found["A"].r_t, found["A"].discount_t) == (7.0, 1.0)


def test_uniform_weights_are_one() -> None:
    assert sample_at(play_tape(make_buffer(), "ABCD"), 0).weight.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.fault("W01")
@pytest.mark.parametrize(("offset", "share"), [(0, 1.0), (1, 0.5), (2, 0.25), (3, 0.0)])
def test_reward_at_each_offset_of_a_window_reaches_the_gradient(offset: int, share: float) -> None:
    rewards = dict.fromkeys("BCDE", 0.0) | {"BCDE"[offset]: 1.0}
    first = transitions(play_tape(make_buffer(n_step=3, gamma=0.5), "ABCDEFGH", rewards))["A"]
    q_tm1 = torch.zeros(1, requires_grad=True)
    mse(torch.tensor([first.r_t]) - q_tm1).sum().backward()
    assert q_tm1.grad.item() == -share


def test_single_equals_window_of_one_step() -> None:
    buffer = play_tape(make_buffer(), "ABC|DEF/GHIJ!KL")
    indices = buffer.sampler.valid_indices()
    general = buffer.ring.window(indices, n_step=1, gamma=0.5)
    single = buffer.ring.one_step_window(indices, gamma=0.5)
    for name in ("r_t", "discount_t", "span_steps"):
        assert torch.equal(getattr(single, name), getattr(general, name)), name
