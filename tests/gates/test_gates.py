"""Each gate on literal values raises its alert exactly at its documented threshold."""

import json
import math

import pytest

from atari_dqn.clock import Clock
from atari_dqn.files.atomic import json_document
from atari_dqn.telemetry.events import GATES
from atari_dqn.telemetry.gates.evaluation_gate import EvaluationsGate
from atari_dqn.telemetry.gates.gate import Gate
from atari_dqn.telemetry.gates.gate_set import Gates
from atari_dqn.telemetry.gates.period_gates import (
    ActionsGate,
    DeadUnitsGate,
    DiskGate,
    PeriodRecord,
    ThroughputGate,
)
from atari_dqn.telemetry.gates.replay_gate import PrioritiesGate
from atari_dqn.telemetry.gates.update_gates import (
    GradientsGate,
    GradNormGate,
    LossGate,
    QBoundGate,
    UpdateRecord,
)

NAN, INF = math.nan, math.inf


def update(number: int = 1, **values: float) -> UpdateRecord:
    plain = {"loss": 0.5, "mean_q": 1.0, "max_q": 2.0, "mean_abs_td_error": 0.7, "grad_norm": 3.0}
    return UpdateRecord(number, **{**plain, "nonfinite_gradients": 0.0, **values})


def period(**values) -> PeriodRecord:
    plain = {"greedy_counts": (0, 0), "dead_unit_share": None, "updates_per_second": 0.0}
    return PeriodRecord(**{**plain, "free_disk_bytes": 10**12, **values})


def states(gate: Gate, *seen) -> list[str]:
    """Return the state of a gate after each record."""
    found = []
    for one in seen:
        gate.check(one)
        found.append(gate.state)
    return found


@pytest.mark.fault("D03")
@pytest.mark.parametrize("name", ["loss", "mean_q", "max_q"])
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_first_loss_or_q_that_is_not_finite_halts(name: str, value: float) -> None:
    assert states(LossGate(), update(), update(**{name: value})) == ["ok", "tripped"]


@pytest.mark.fault("D03")
def test_largest_finite_loss_does_not_halt() -> None:
    assert states(LossGate(), update(loss=3.4e38, max_q=3.4e38, grad_norm=NAN)) == ["ok"]


@pytest.mark.fault("D03")
def test_halts_after_more_than_100_gradients_in_a_row_that_are_not_finite() -> None:
    gate = GradientsGate(max_consecutive=100)
    found = states(gate, *(update(n, nonfinite_gradients=n) for n in range(1, 102)))
    assert found == ["watching"] * 100 + ["tripped"]


@pytest.mark.fault("D03")
def test_finite_gradient_in_between_begins_the_count_anew() -> None:
    gate = GradientsGate(max_consecutive=3)
    assert states(gate, *(update(nonfinite_gradients=n) for n in (1, 2, 3, 0, 1, 2, 3))) == ["watching"] * 7


def test_gate_of_gradients_is_ok_again_after_1000_finite_ones() -> None:
    gate = GradientsGate(max_consecutive=3)
    found = states(gate, update(nonfinite_gradients=1), *[update()] * 1000)
    assert found == ["watching"] * 1000 + ["ok"]


@pytest.mark.fault("D03")
@pytest.mark.parametrize(("norm", "state"), [(1000.0, "ok"), (1000.5, "warned"), (NAN, "ok"), (INF, "ok")])
def test_gradient_norm_above_1000_warns(norm: float, state: str) -> None:
    assert states(GradNormGate(max_norm=1000.0), update(grad_norm=norm)) == [state]


def test_gradient_norm_that_goes_to_and_fro_is_reported_once() -> None:
    gate = GradNormGate(max_norm=1000.0)
    changes = [gate.check(update(grad_norm=norm)) for norm in (2000.0, 1.0) * 50]
    assert [change.state for change in changes if change] == ["warned"]


@pytest.mark.parametrize(
    ("values", "state"),
    [({"max_q": 100.0}, "ok"), ({"max_q": 100.1}, "warned"), ({"mean_q": -100.1}, "warned")],
)
def test_q_above_the_largest_return_warns(values: dict[str, float], state: str) -> None:
    gate = QBoundGate(bound=50.0, max_over_bound=2.0)
    assert states(gate, update(**values)) == [state]


def test_q_without_a_bound_never_warns() -> None:
    assert states(QBoundGate(bound=INF, max_over_bound=1.0), update(max_q=3e38)) == ["ok"]


@pytest.mark.fault("D03")
@pytest.mark.parametrize(
    ("returns", "found"),
    [
        ((0.0, 300.0, 149.0, 149.0, 149.0), ["ok", "ok", "watching", "watching", "warned"]),
        ((0.0, 300.0, 150.0, 150.0, 150.0), ["ok"] * 5),
        ((0.0, 300.0, 149.0, 149.0, 151.0, 149.0), ["ok", "ok", "watching", "watching", "ok", "watching"]),
        ((-21.0, 19.0, -2.0, -2.0, -2.0), ["ok", "ok", "watching", "watching", "warned"]),
        ((-21.0, 19.0, -1.0, -1.0, -1.0), ["ok"] * 5),
        ((-20.0, -29.0, -31.0), ["ok", "ok", "watching"]),
        ((20.5, 20.8, 20.1, 20.3, 20.2), ["ok"] * 5),
        ((0.0, 0.0, -5.0), ["ok"] * 3),
    ],
)
def test_third_evaluation_in_a_row_that_lost_over_half_of_the_gain_warns(returns, found) -> None:
    assert states(EvaluationsGate(max_drop=0.5, patience=3), *returns) == found


def test_evaluations_gate_is_ok_again_with_the_next_good_one() -> None:
    gate = EvaluationsGate(max_drop=0.5, patience=1)
    assert states(gate, 100.0, 10.0, 90.0) == ["ok", "warned", "ok"]


def test_one_greedy_action_over_the_promised_periods_warns() -> None:
    gate = ActionsGate(max_share=0.99, patience=3)
    counts = [(50, 50), (150, 50), (250, 50), (350, 50)]
    assert states(gate, *(period(greedy_counts=n) for n in counts)) == [
        "ok", "watching", "watching", "warned",
    ]  # fmt: skip


def test_share_of_a_greedy_action_is_of_the_period_alone() -> None:
    gate = ActionsGate(max_share=0.99, patience=1)
    counts = [(980, 20), (1079, 21), (1179, 21)]
    assert states(gate, *(period(greedy_counts=n) for n in counts)) == ["ok", "ok", "warned"]


def test_period_without_a_greedy_action_tells_nothing() -> None:
    gate = ActionsGate(max_share=0.99, patience=1)
    assert states(gate, period(greedy_counts=(5, 0)), period(greedy_counts=(5, 0))) == ["warned", "warned"]


@pytest.mark.parametrize(("share", "state"), [(None, "ok"), (0.95, "ok"), (0.951, "warned")])
def test_dead_hidden_units_warn(share: float | None, state: str) -> None:
    assert states(DeadUnitsGate(max_share=0.95), period(dead_unit_share=share)) == [state]


def rates(*values: float) -> list[PeriodRecord]:
    return [period(updates_per_second=value) for value in values]


def test_half_the_median_speed_for_the_promised_periods_warns() -> None:
    gate = ThroughputGate(min_share=0.5, patience=3)
    found = states(gate, *rates(*[200.0] * 10, 100.0, 99.0, 99.0, 99.0))
    assert found == ["ok"] * 11 + ["watching", "watching", "warned"]


def test_speed_is_not_checked_with_fewer_than_10_periods_nor_with_those_without_updates() -> None:
    gate = ThroughputGate(min_share=0.5, patience=1)
    assert states(gate, *rates(*[0.0] * 20, *[200.0] * 9, 1.0, 200.0, 0.0)) == ["ok"] * 32


def test_run_that_moved_to_a_slower_machine_is_ok_in_the_end() -> None:
    gate = ThroughputGate(min_share=0.5, patience=3)
    assert states(gate, *rates(*[200.0] * 100, *[50.0] * 52))[-1] == "ok"


@pytest.mark.parametrize(("free", "state"), [(10**10, "ok"), (10**10 - 1, "warned")])
def test_nearly_full_disk_warns(free: int, state: str) -> None:
    assert states(DiskGate(min_free_bytes=10**10), period(free_disk_bytes=free)) == [state]


@pytest.mark.parametrize(("share", "state"), [(NAN, "ok"), (0.02, "ok"), (0.0199, "warned"), (1.0, "ok")])
def test_replay_of_which_little_is_drawn_in_effect_warns(share: float, state: str) -> None:
    assert states(PrioritiesGate(min_share=0.02), share) == [state]


def test_replay_that_recovered_is_ok_again() -> None:
    assert states(PrioritiesGate(min_share=0.02), 0.01, NAN, 0.03) == ["warned", "warned", "ok"]


def all_gates(clock: Clock) -> Gates:
    return Gates(
        clock,
        updates=(
            LossGate(),
            GradientsGate(max_consecutive=3),
            GradNormGate(max_norm=10.0),
            QBoundGate(bound=2.0, max_over_bound=1.0),
        ),
        evaluations=(EvaluationsGate(max_drop=0.5, patience=2),),
        replay=(PrioritiesGate(min_share=0.5),),
        periods=(
            ActionsGate(max_share=0.9, patience=2),
            DeadUnitsGate(max_share=0.9),
            ThroughputGate(min_share=0.5, patience=2),
            DiskGate(min_free_bytes=100),
        ),
    )


def course(gates: Gates, first: int, last: int) -> list[object]:
    """Pass records of all kinds to the gates, and return the state changes."""
    changes: list[object] = []
    for n in range(first, last):
        changes += gates.check_update(update(n, nonfinite_gradients=n % 5 % 3, grad_norm=n, max_q=n / 8))
        changes += gates.check_evaluation(10.0 if n % 7 == 0 else n % 3)
        changes += gates.check_replay(1 / (n % 6 + 1))
        speed = 1.0 if n % 17 > 14 else 10.0
        measured = {"dead_unit_share": n / 25, "updates_per_second": speed, "free_disk_bytes": 120 - n}
        changes += gates.check_period(period(greedy_counts=(n, n // 20), **measured))
    return changes


@pytest.mark.fault("D03")
@pytest.mark.parametrize("cut", range(1, 39, 3))
def test_gates_go_on_from_their_state_as_if_never_interrupted(cut: int) -> None:
    clock = Clock(frame_skip=4, prefill_steps=0)
    saved, loaded, whole = (all_gates(clock) for _ in range(3))
    before = course(saved, 1, cut)
    loaded.load_state_dict(json.loads(json_document(saved.state_dict())))
    assert before + course(loaded, cut, 40) == course(whole, 1, 40)


def test_every_gate_but_the_halting_ones_speaks_in_that_course() -> None:
    changes = course(all_gates(Clock(frame_skip=4, prefill_steps=0)), 1, 40)
    warned = {change.gate for change in changes if change.state == "warned"}
    assert warned == GATES.keys() - {"loss", "gradients"}


def test_gates_are_exactly_those_that_are_declared() -> None:
    assert all_gates(Clock(frame_skip=4, prefill_steps=0)).states == dict.fromkeys(GATES, "ok")


def test_event_tells_gate_place_value_and_threshold() -> None:
    clock = Clock(frame_skip=4, prefill_steps=0, steps=300, updates=70)
    (event,) = all_gates(clock).check_update(update(69, grad_norm=12.0))
    assert (event.gate, event.state, event.step, event.env_frames) == ("grad_norm", "warned", 300, 1200)
    assert (event.value, event.threshold) == (12.0, 10.0)
    assert event.message == "update 69: gradient norm 12 is above 10"
