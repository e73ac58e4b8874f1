"""The model of the flow, with numbers that are worked out by hand."""

from dataclasses import replace

import pytest

from atari_dqn.bench.flow import FlowConstants, predict

# 100 steps/s an actor; a step costs the learner 0.02 / 50 + 0.5 · (0.001 + 0.002 / 10) = 0.001 s
CONSTANTS = FlowConstants(
    actor_steps_per_second=100.0, envs_per_actor=1, message_steps=50, message_bytes=350_000,
    receiving_seconds=0.02, update_seconds=0.001, updates_per_step=0.5, publishing_seconds=0.002,
    publish_period_updates=10, sync_period_steps=100, messages_in_flight=2, bytes_per_second=1e9,
)  # fmt: skip


def test_few_actors_make_the_learner_wait():
    flow = predict(CONSTANTS, 4)
    assert (flow.bound, flow.steps_per_second, flow.frames_per_second) == ("actors", 400.0, 1600.0)
    assert flow.learner_waits == pytest.approx(0.6)
    assert flow.actors_wait == 0.0


def test_many_actors_wait_for_the_learner():
    flow = predict(CONSTANTS, 40)
    assert flow.bound == "learner"
    assert flow.steps_per_second == pytest.approx(1000.0)
    assert flow.actors_wait == pytest.approx(0.75)
    assert flow.learner_waits == pytest.approx(0.0)


def test_a_slow_network_holds_both():
    flow = predict(replace(CONSTANTS, bytes_per_second=3.5e6), 40)  # 10 messages/s
    assert (flow.bound, flow.steps_per_second) == ("network", 500.0)
    assert flow.learner_waits == pytest.approx(0.5)


def test_actors_and_learner_share_the_cores_of_one_machine():
    flow = predict(replace(CONSTANTS, shared_cores=2, actor_cores=2), 8)  # 0.01 + 0.001 s of a core a step
    assert flow.bound == "cores"
    assert flow.steps_per_second == pytest.approx(2 / 0.011)


def test_threads_of_an_update_take_their_cores_from_the_actors():
    shared = replace(CONSTANTS, shared_cores=2, actor_cores=2, learner_threads=3)
    flow = predict(shared, 8)  # 0.5 · 0.001 s on each of two more cores
    assert flow.steps_per_second == pytest.approx(2 / 0.012)


def test_actors_beyond_their_cores_play_no_more_steps():
    assert predict(replace(CONSTANTS, actor_cores=3), 6).steps_per_second == 300.0


def test_the_lag_in_updates_is_what_the_learner_makes_meanwhile():
    assert predict(CONSTANTS, 4).lag_updates == pytest.approx(0.525 * 200)


def test_the_lag_is_half_a_period_of_each_kind_and_the_way_of_a_message():
    # 200 updates/s: 10 / 200 / 2; 100 steps/s of an environment: (1 − 0.5) / 2; a message: 0.5 / 2
    assert predict(CONSTANTS, 4).lag_seconds == pytest.approx(0.025 + 0.25 + 0.25)


def test_actors_that_wait_act_with_weights_that_are_older_by_their_open_messages():
    # 500 updates/s: 10 / 500 / 2; 25 steps/s of an environment: (4 − 2) / 2; two messages, less 0.5 / 2
    assert predict(CONSTANTS, 40).lag_seconds == pytest.approx(0.01 + 1.0 + 4.0 - 0.25)
