"""n and γ of annealed horizons, against values worked out by hand from the paper's rule."""

import pytest

from atari_dqn.schedule import AnnealedHorizon, ConstantHorizon, Horizon


def bbf(last_reset=lambda _: 0) -> AnnealedHorizon:
    return AnnealedHorizon(
        start=Horizon(n_step=10, gamma=0.97),
        end=Horizon(n_step=3, gamma=0.997),
        decay_updates=10_000,
        last_reset=last_reset,
    )


@pytest.mark.parametrize(
    ("updates", "n_step", "gamma"),
    [
        (0, 10, 0.97),
        (2_500, 7, 1 - 0.03 * 0.1**0.25),  # 10 · 0.3^¼ = 7.40
        (5_000, 5, 1 - 0.03 * 0.1**0.5),  # 10 · √0.3 = 5.48
        (6_000, 5, 1 - 0.03 * 0.1**0.6),  # 10 · 0.3^0.6 = 4.86
        (9_999, 3, 0.997),
        (10_000, 3, 0.997),
        (39_999, 3, 0.997),
    ],
)
def test_n_and_gamma_change_exponentially(updates: int, n_step: int, gamma: float) -> None:
    found = bbf().at(updates)
    assert found.n_step == n_step
    assert found.gamma == pytest.approx(gamma, abs=1e-5)


def test_end_is_reached_exactly() -> None:
    assert bbf().at(10_000) == Horizon(n_step=3, gamma=0.997)


def test_annealing_begins_again_after_a_reset() -> None:
    schedule = bbf(last_reset=lambda updates: updates // 40_000 * 40_000)
    assert [schedule.at(updates).n_step for updates in (39_999, 40_000, 45_000, 50_000)] == [3, 10, 5, 3]


def test_updates_with_a_changing_horizon_are_taken_one_by_one() -> None:
    assert bbf().updates_together == 1
    assert ConstantHorizon(horizon=Horizon(n_step=1, gamma=0.99)).updates_together > 10**9
