"""Lockstep: actors in processes give the state of actors in this process, bit by bit, and resume exactly."""

from contextlib import closing

import pytest
from lockstep import AGENTS, begun, digest, lockstep, play
from tiny import CPU

from atari_dqn.actors.inline import InlineActors
from atari_dqn.spec.schema import Spec
from atari_dqn.train.actor_meter import ActorMeter
from atari_dqn.train.build import assemble, local_actors

AGENTS_AND_ACTORS = [("dqn", 1), ("apex", 1), ("r2d2", 1), ("dqn", 2), ("apex", 2), ("r2d2", 2), ("r2d2", 4)]
ON_PONG = ("game=pong", "env.kind=atari", "env.max_episode_frames=400", "env.screen_size_pixels=84")
PONG_CASES = [
    pytest.param(
        agent, actors, marks=pytest.mark.slow if (agent, actors) == ("r2d2", 2) else pytest.mark.thorough
    )
    for agent in AGENTS
    for actors in (1, 2, 4)
]
MEMORY_AND_MORE = ["r2d2", *(pytest.param(agent, marks=pytest.mark.slow) for agent in ("dqn", "apex"))]
APEX_AND_MORE = ["apex", *(pytest.param(agent, marks=pytest.mark.slow) for agent in ("dqn", "r2d2"))]
"""The agent with memory has all that the others have, and its states."""


@pytest.mark.slow
@pytest.mark.parametrize(("agent", "actors"), AGENTS_AND_ACTORS)
def test_actors_in_processes_equal_those_in_one_process(agent: str, actors: int) -> None:
    assert_processes_change_nothing(lockstep(actors, *AGENTS[agent]))


@pytest.mark.parametrize(("agent", "actors"), PONG_CASES)
def test_actors_of_pong_in_processes_equal_those_in_one_process(agent: str, actors: int) -> None:
    assert_processes_change_nothing(lockstep(actors, *AGENTS[agent], *ON_PONG))


def assert_processes_change_nothing(spec: Spec) -> None:
    digests = []
    for make_actors in (InlineActors, local_actors):
        with begun(spec, make_actors) as training:
            play(training)
            assert training.clock.updates > 20
            digests.append(digest(training))
    assert digests[0] == digests[1]


@pytest.mark.fault("M08")
@pytest.mark.parametrize("agent", MEMORY_AND_MORE)
def test_a_restored_training_continues_as_the_saved_one(agent: str) -> None:
    spec = lockstep(2, *AGENTS[agent])
    with begun(spec) as training:
        play(training, 15)
        state = training.state_dict()
        with closing(assemble(spec, CPU, InlineActors)) as restored:
            restored.load_state_dict(state)
            assert digest(restored) == digest(training)
            play(restored)
            play(training)
            assert restored.clock.steps >= 300
            assert digest(restored) == digest(training)


@pytest.mark.parametrize("agent", APEX_AND_MORE)
def test_the_replay_holds_its_invariant_after_every_fragment(agent: str) -> None:
    with begun(lockstep(2, *AGENTS[agent])) as training:
        for _ in training.iterations():
            training.replay.check()


def test_an_actor_fetches_weights_once_a_period() -> None:
    with begun(lockstep(1, "replay.prefill_steps=24")) as training:
        versions = [iteration.fragment.version.tolist() for iteration, _ in play(training, 6)]
    # 6 updates follow each fragment from the second on; weights are fetched at the start of every other
    # fragment, whose first actions were selected before
    assert [len(set(each)) for each in versions[2:]] == [2, 1, 2, 1]
    assert versions[0][0] == 0


@pytest.mark.fault("M02")
def test_weights_that_are_too_old_are_fetched_before_the_period_ends() -> None:
    lag = ("actors.sync_period_steps=1000", "actors.max_lag_updates=12", "replay.prefill_steps=24")
    with begun(lockstep(1, *lag)) as training:
        for iteration in training.iterations():
            newest = training.learner.updates - iteration.updates
            assert newest - iteration.fragment.version[-1] <= 12


def test_time_since_the_weights_were_published_goes_on_after_a_resume() -> None:
    spec, now = lockstep(2), [0.0]
    with begun(spec) as training:
        play(training, 8)
        state = training.state_dict()
    with closing(assemble(spec, CPU, InlineActors)) as restored:
        restored.meter = ActorMeter(2, frame_skip=4, now=lambda: now[0])
        restored.load_state_dict(state)
        now[0] = 30.0
        play(restored, 1)
        _, data = restored.meter.report(restored.envs.records, seconds=1.0)
    assert data["mean_lag_seconds"] == 30.0
