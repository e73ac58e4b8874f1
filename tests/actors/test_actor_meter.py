"""Reports of actors: the lag of every transition, which side has waited, and what was lost."""

from dataclasses import replace

import numpy as np
import pytest
from test_message import fragment

from atari_dqn.actors.records import Record
from atari_dqn.train.actor_meter import MOST_SHOWN, ActorMeter


def played(actor: int, versions: list[int]):
    """Return a fragment of two environments without resets."""
    sent = fragment(len(versions), 2)
    first = np.zeros((len(versions), 2), dtype=bool)
    return replace(sent, actor=actor, version=np.array(versions), first=first)


@pytest.mark.fault("M02")
def test_the_lag_of_every_transition_is_counted() -> None:
    meter = ActorMeter(2, frame_skip=4)
    meter.stored(played(0, [10, 10, 7]), updates=10)
    meter.stored(played(1, [2]), updates=10)
    _, data = meter.report([Record(), Record()], seconds=1.0)
    assert data["lag_updates"] == {"0": 2, "2-3": 1, "8-15": 1}
    assert (data["mean_lag_updates"], data["max_lag_updates"]) == (11 / 4, 8)
    assert [actor["lag_updates"] for actor in data["actors"]] == [1.0, 8.0]
    assert meter.report([Record(), Record()], seconds=1.0)[1]["lag_updates"] == {}


def test_speed_and_age_are_those_of_the_period() -> None:
    time = [0.0]
    meter = ActorMeter(1, frame_skip=4, now=lambda: time[0])
    meter.published(4)
    time[0] = 2.0
    meter.stored(played(0, [4]), updates=4)
    meter.waited("learner", 1.0)
    time[0] = 9.0  # of which 4 s were an evaluation
    message, data = meter.report([Record(dropped_steps=3, restarts=1)], seconds=5.0)
    assert data["actors"][0]["frames_per_second"] == 2 * 4 / 5
    assert (data["learner_waited_share"], data["actors_waited_share"]) == (0.2, 0.0)
    assert data["mean_lag_seconds"] == 2.0
    assert "3 steps dropped in 1 restarts" in message


def test_a_report_names_the_actors_that_need_attention() -> None:
    records = [Record() for _ in range(MOST_SHOWN + 8)]
    for record in records[:-1]:
        record.started(1e12)
    _, data = ActorMeter(len(records), frame_skip=4).report(records, seconds=1.0)
    assert len(data["actors"]) == MOST_SHOWN
    assert data["actors"][-1]["state"] == "ended"
