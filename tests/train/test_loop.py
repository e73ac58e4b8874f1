import inspect
from dataclasses import dataclass, field
from importlib.resources import files

import numpy as np
import pytest
from tiny import begun, ticks_of, tiny_spec

from atari_dqn.clock import Clock
from atari_dqn.schedule import LinearSchedule
from atari_dqn.train.loop import q_learning
from atari_dqn.types import StepBatch

PACKAGE = f"{files('atari_dqn')}/"
"""Not its name alone, which the folder of a clone has too."""


@dataclass
class Fakes:
    """Parts that only record their calls.

    Environment 0 shows a reset row at each iteration in `resets_at`.
    """

    envs: int = 1
    prefill_steps: int = 4
    update_period_steps: int = 2
    updates_per_period: int = 1
    total_steps: int = 12
    resets_at: tuple[int, ...] = ()
    calls: list[str] = field(default_factory=list)
    iterations: int = 0

    def __post_init__(self) -> None:
        self.clock = Clock(frame_skip=4, prefill_steps=self.prefill_steps)
        self.exploration = LinearSchedule(start=1.0, end=0.1, decay_frames=80)

    def act(self, epsilon: float) -> np.ndarray:
        self.calls.append("act")
        return np.zeros(self.envs, dtype=np.int64)

    def send(self, actions: np.ndarray) -> None:
        self.calls.append("send")

    def update(self, count: int) -> None:
        self.calls += ["update"] * count

    def recv(self) -> StepBatch:
        self.calls.append("recv")
        first = np.zeros(self.envs, dtype=bool)
        first[0] = self.iterations in self.resets_at
        self.iterations += 1
        none = np.zeros(self.envs, dtype=bool)
        return StepBatch(
            frame=np.zeros((self.envs, 1, 1), dtype=np.uint8), reward=np.zeros(self.envs), terminated=none,
            truncated=none, life_lost=none, first=first,
        )  # fmt: skip

    def store(self, actions: np.ndarray, step: StepBatch) -> None:
        self.calls.append("store")


def test_iteration_updates_while_the_emulators_run_and_stores_what_they_showed() -> None:
    parts = Fakes(prefill_steps=1, update_period_steps=1, total_steps=3)
    list(q_learning(parts))
    assert parts.calls[:4] == ["act", "send", "recv", "store"]
    assert parts.calls[-5:] == ["act", "send", "update", "recv", "store"]


def test_no_update_happens_in_the_prefill() -> None:
    updates = [each.updates for each in q_learning(Fakes(prefill_steps=4, update_period_steps=2))]
    assert updates == [0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 1, 0]


@pytest.mark.parametrize("envs", [1, 3, 8])
def test_updates_keep_their_ratio_to_steps_whatever_the_envs(envs: int) -> None:
    parts = Fakes(envs=envs, prefill_steps=20, update_period_steps=4, total_steps=240)
    for _ in q_learning(parts):
        steps_before = parts.clock.steps - envs
        assert parts.clock.updates == max(0, steps_before - 20) // 4


@pytest.mark.parametrize("envs", [1, 3, 8])
def test_updates_of_a_real_run_keep_their_ratio(envs: int) -> None:
    spec = tiny_spec(f"env.num_envs={envs}", "training.total_frames=600")
    with begun(spec) as training:
        last = ticks_of(training)[-1]
        clock = training.clock
    steps_before = clock.steps - int(np.count_nonzero(~last.step.first))
    assert clock.updates == (steps_before - 64) // 4


def test_each_period_takes_as_many_updates_as_the_ratio_says() -> None:
    parts = Fakes(prefill_steps=4, update_period_steps=2, updates_per_period=3, total_steps=12)
    assert [each.updates for each in q_learning(parts)] == [0] * 6 + [3, 0, 3, 0, 3, 0]


def test_many_envs_take_several_updates_in_an_iteration() -> None:
    parts = Fakes(envs=8, prefill_steps=8, update_period_steps=4, total_steps=32)
    assert [each.updates for each in q_learning(parts)] == [0, 0, 2, 2]


def test_reset_row_counts_no_step() -> None:
    parts = Fakes(envs=1, prefill_steps=100, total_steps=3, resets_at=(1,))
    assert len(list(q_learning(parts))) == 4


def test_loop_ends_with_its_budget_of_steps() -> None:
    parts = Fakes(envs=5, total_steps=12)
    list(q_learning(parts))
    assert parts.clock.steps == 15  # environments move together: the first iteration at or past 12


def test_loop_that_has_reached_its_budget_does_nothing() -> None:
    parts = Fakes(total_steps=0)
    assert list(q_learning(parts)) == []


@pytest.mark.fault("D06", "M03")
def test_epsilon_is_one_at_the_first_learning_step_of_a_real_run() -> None:
    epsilon_at_step: dict[int, float] = {}
    with begun(tiny_spec()) as training:
        while training.clock.steps < 67:
            step = training.clock.steps
            epsilon_at_step[step] = ticks_of(training, 1)[0].epsilon
    # the prefill is 64 steps; then 0.9 · 4 frames / 1,000 frames less a step
    assert (epsilon_at_step[63], epsilon_at_step[64]) == (1.0, 1.0)
    assert [epsilon_at_step[step] for step in (65, 66)] == pytest.approx([0.9964, 0.9928], abs=1e-12)


@pytest.mark.fault("D06")
def test_prefill_does_not_count_toward_epsilons_fall() -> None:
    epsilons = [each.epsilon for each in q_learning(Fakes(prefill_steps=4, total_steps=12))]
    assert epsilons[:5] == [1.0] * 5
    assert epsilons[5] == pytest.approx(1 - 0.9 * 4 / 80)


def test_prefill_is_random_whatever_epsilon_starts_at() -> None:
    parts = Fakes(prefill_steps=3, total_steps=5)
    parts.exploration = LinearSchedule(start=0.2, end=0.1, decay_frames=80)
    assert [each.epsilon for each in q_learning(parts)][:4] == [1.0, 1.0, 1.0, 0.2]


def test_network_is_five_calls_below_the_loop_when_acting(monkeypatch: pytest.MonkeyPatch) -> None:
    depths: list[int] = []
    with begun(tiny_spec("exploration.epsilon_end=0.0", "exploration.epsilon_decay_frames=1")) as training:
        ticks_of(training, 90)
        q_values = training.actor.network.q_values

        def noted(*arguments, **named):
            ours = [frame.function for frame in inspect.stack() if frame.filename.startswith(PACKAGE)]
            depths.append(1 + ours.index("q_learning"))  # q_values itself and the frames between
            return q_values(*arguments, **named)

        monkeypatch.setattr(training.actor.network, "q_values", noted)
        ticks_of(training, 2)
    assert depths == [5, 5]
