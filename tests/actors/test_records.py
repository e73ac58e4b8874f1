"""The record of an actor: what is lost, and when it begins anew."""

import pytest

from atari_dqn.actors.records import SILENT_SECONDS, Record


@pytest.mark.fault("M07")
def test_steps_that_were_played_and_not_sent_are_dropped() -> None:
    record = Record()
    record.started(0.0)
    record.received(1.0, 100)
    record.ended(2.0, "was killed", steps_played=107)
    assert (record.dropped_steps, record.incarnation, record.restarts) == (7, 1, 1)
    record.received(3.0, 50)
    record.ended(4.0, "was killed", steps_played=160)  # 107 and 53
    assert record.dropped_steps == 10


def test_the_time_until_a_restart_doubles_until_a_message_has_come() -> None:
    record, waits = Record(), []
    for time in (10.0, 20.0, 30.0):
        record.ended(time, "failed", steps_played=0)
        waits.append(round(record.next_start - time, 3))
    record.received(40.0, 5)
    record.ended(50.0, "failed", steps_played=5)
    assert (waits, round(record.next_start - 50.0, 3)) == ([0.1, 0.2, 0.4], 0.1)


def test_the_state_of_an_actor_is_named() -> None:
    record = Record()
    states = [record.state(0.0)]
    record.started(0.0)
    states += [record.state(1.0), record.state(SILENT_SECONDS + 1)]
    assert states == ["ended", "playing", "silent"]
