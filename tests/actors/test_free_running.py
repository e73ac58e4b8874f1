"""Free-running actors: the declared ratio is held, and an actor that ends costs counted steps alone."""

import os
import signal
import time
from contextlib import closing
from itertools import islice

import pytest
from lockstep import AGENTS, begun, play
from tiny import CPU, tiny_spec

from atari_dqn.actors.inline import InlineActors
from atari_dqn.train.build import assemble, local_actors


def free(actors: int, *overrides: str):
    return tiny_spec(
        "env.num_envs=4", "actors.mode=free_running", f"actors.processes={actors}", "actors.fragment_steps=5",
        "actors.error_buffer_steps=40", "actors.sync_period_steps=10", *overrides,
    )  # fmt: skip


def ratio(training) -> float:
    """Return the samples per step that was stored after the prefill."""
    clock = training.clock
    return clock.updates * training.replay.sampler.batch_size / (clock.steps - clock.prefill_steps)


@pytest.mark.parametrize(
    "agent", ["dqn", *(pytest.param(agent, marks=pytest.mark.slow) for agent in ("apex", "r2d2"))]
)
def test_the_declared_ratio_is_held(agent: str) -> None:
    with begun(free(2, *AGENTS[agent], "training.total_frames=4000"), InlineActors) as training:
        play(training)
        declared = training.replay.sampler.batch_size / training.update_period_steps
        assert abs(ratio(training) / declared - 1) < 40 / 1000 + 0.02


def test_the_wait_for_a_message_that_arrives_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    sides: list[str] = []
    with begun(free(2), InlineActors) as training:
        monkeypatch.setattr(training.meter, "waited", lambda side, seconds: sides.append(side))
        assert next(training.iterations()).fragment is not None
    assert sides == ["learner"]


@pytest.mark.fault("M07")
@pytest.mark.slow
def test_killed_actors_cost_the_steps_that_are_counted_as_dropped() -> None:
    with begun(free(2, "training.total_frames=6000"), local_actors) as training:
        pool = training.envs
        for number, _ in enumerate(training.iterations()):
            if number in (150, 300, 450):
                victim = next(iter(pool.actors.values()))
                os.kill(victim.process.pid, signal.SIGKILL)
        records = pool.records
        assert training.clock.steps >= 1500
        assert sum(record.restarts for record in records) == 3
        played = sum(pool.carrier.steps_played(number) for number in range(2))
        received = sum(record.steps_received for record in records)
        assert 0 <= sum(record.dropped_steps for record in records) <= played - received
        assert max(record.dropped_steps for record in records) <= 3 * 3 * 10
        training.replay.check()


@pytest.mark.fault("M08")
def test_a_resumed_learner_continues_with_new_incarnations() -> None:
    spec = free(2)
    with begun(spec, InlineActors) as training:
        list(islice(training.iterations(), 40))
        state = training.state_dict()
        with closing(assemble(spec, CPU, InlineActors)) as restored:
            restored.load_state_dict(state)
            assert [record.incarnation for record in restored.envs.records] == [1, 1]
            assert restored.limiter.state_dict() == training.limiter.state_dict()


def test_a_learner_resumed_without_its_replay_waits_until_the_prefill_is_there() -> None:
    spec = free(2)
    with begun(spec, InlineActors) as training:
        list(islice(training.iterations(), 40))
        state = training.state_dict()
        state["replay"] = {"newest_frame": state["replay"]["ring"]["newest_frame"].numpy()}
        with closing(assemble(spec, CPU, InlineActors)) as restored:
            restored.load_state_dict(state)
            steps = restored.clock.steps
            assert any(each.updates for each in islice(restored.iterations(), 100))
            assert restored.clock.steps - steps >= spec.replay.prefill_steps


class SilentActors(InlineActors):
    """Actors that send nothing."""

    def receive(self, timeout_seconds: float) -> bytes | None:
        time.sleep(0.01)
        return None


def test_a_learner_that_waits_for_all_actors_says_so() -> None:
    with begun(free(2), SilentActors) as training:
        list(islice(training.iterations(), 2))
        assert list(training.notices()) == []
        training._waited_seconds = 60.0
        (kind, message, data) = next(training.notices())
        assert (kind, data) == ("no message", {"ended": 2})
        assert message == "the learner has waited for 60 seconds for any actor: 2 ended"
        assert list(training.notices()) == []
