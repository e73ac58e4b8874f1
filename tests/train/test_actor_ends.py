"""Notices of actors that have ended: with the reason, and at most one of each actor in a minute."""

from atari_dqn.actors.records import Record
from atari_dqn.train.actor_ends import ActorEnds


def ended(record: Record, reason: str) -> None:
    record.ended(0.0, reason, steps_played=0)


def test_a_notice_has_the_reason_and_the_number_of_restarts() -> None:
    records = [Record(), Record()]
    ended(records[1], "actor 1 was killed by signal 9")
    assert list(ActorEnds(2).notices(records)) == [
        (
            "actor ended",
            "actor 1 was killed by signal 9; it is started again (restart 1)",
            {"actor": 1, "restarts": 1},
        )
    ]


def test_an_end_is_reported_once() -> None:
    records, now = [Record()], [0.0]
    ends = ActorEnds(1, now=lambda: now[0])
    ended(records[0], "ended")
    counts = []
    for now[0] in (0.0, 100.0):
        counts.append(len(list(ends.notices(records))))
    assert counts == [1, 0]


def test_ends_within_a_minute_are_one_notice_when_it_is_over() -> None:
    records, now = [Record()], [0.0]
    ends = ActorEnds(1, now=lambda: now[0])
    found = []
    for now[0] in (0.0, 20.0, 40.0, 60.0):
        ended(records[0], f"ended at {now[0]:.0f}")
        found += [(now[0], data["restarts"]) for _, _, data in ends.notices(records)]
    assert found == [(0.0, 1), (60.0, 4)]
