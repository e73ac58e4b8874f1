"""Rows that are stored at once leave a replay as rows that are stored one at a time, bit by bit."""

from dataclasses import fields

import numpy as np
import pytest
import torch
from histories import EVENTS, History
from hypothesis import given, settings
from hypothesis import strategies as st
from tapes import prioritized
from test_groups import EACH, ROWS, by_priorities, grouped, sequences_on, transitions_on, uniform

from atari_dqn.replay.groups import GroupedReplay
from atari_dqn.replay.replay import Replay
from atari_dqn.run.checkpoint.state_tree import tree_digest
from atari_dqn.types import StepBatch

FRAGMENTS = st.lists(
    st.tuples(st.integers(0, 1), st.lists(st.tuples(EVENTS, EVENTS), min_size=1, max_size=3 * ROWS)),
    min_size=2,
    max_size=8,
)


class Recorder:
    """Takes rows as a replay does, and keeps them."""

    def begin(self, step) -> None:
        self.reset, self.rows = step, []

    def append(self, *row) -> None:
        self.rows.append(row)


def played(fragments) -> tuple[list[StepBatch], list[tuple[int, list]]]:
    """Play fragments of two groups; return the first frames of each, and the rows of each fragment."""
    recorders = [Recorder(), Recorder()]
    histories = [History(recorder, EACH) for recorder in recorders]
    found = []
    for group, events in fragments:
        recorders[group].rows = []
        for event in events:
            histories[group].play(event)
        found.append((group, recorders[group].rows))
    return [recorder.reset for recorder in recorders], found


def stacked(steps: list[StepBatch]) -> StepBatch:
    names = [field.name for field in fields(StepBatch)]
    return StepBatch(**{name: np.stack([getattr(step, name) for step in steps]) for name in names})


def begun(make, sampler, resets: list[StepBatch]) -> GroupedReplay:
    replay = grouped(make, sampler)
    for group, reset in zip(replay.groups, resets, strict=True):
        group.begin(reset)
    return replay


def store_at_once(group: Replay, rows: list, error: np.ndarray | None) -> None:
    action, discount, steps, states = zip(*rows, strict=True)
    group.extend(np.stack(action), np.stack(discount), stacked(steps), states, error)


@pytest.mark.parametrize("sampler", [uniform, by_priorities])
@pytest.mark.parametrize("make", [transitions_on, sequences_on])
@settings(max_examples=3, deadline=None, derandomize=True)
@given(fragments=FRAGMENTS)
def test_rows_stored_at_once_equal_rows_that_are_appended(make, sampler, fragments) -> None:
    resets, played_fragments = played(fragments)
    appended, at_once = (begun(make, sampler, resets) for _ in range(2))
    for group, rows in played_fragments:
        for row in rows:
            appended.groups[group].append(*row)
        store_at_once(at_once.groups[group], rows, None)
        appended.check()
        at_once.check()
    assert tree_digest(at_once.state_dict()) == tree_digest(appended.state_dict())


@pytest.mark.parametrize("sampler", [uniform, by_priorities])
@pytest.mark.parametrize("make", [transitions_on, sequences_on])
@settings(max_examples=3, deadline=None, derandomize=True)
@given(fragments=FRAGMENTS)
def test_errors_of_rows_stored_at_once_equal_those_stored_one_at_a_time(make, sampler, fragments) -> None:
    resets, played_fragments = played(fragments)
    one_at_a_time, at_once = (begun(make, sampler, resets) for _ in range(2))
    rng = np.random.Generator(np.random.PCG64(1))
    for group, rows in played_fragments:
        error = rng.exponential(size=(len(rows), EACH)).astype(np.float32)
        error[error > 2] = np.nan
        for place, row in enumerate(rows):
            store_at_once(one_at_a_time.groups[group], [row], error[place : place + 1])
        store_at_once(at_once.groups[group], rows, error)
        one_at_a_time.check()
        at_once.check()
    assert tree_digest(at_once.state_dict()) == tree_digest(one_at_a_time.state_dict())


def test_rows_stored_at_once_wait_until_the_last_that_they_overwrite_is_given_back() -> None:
    resets, [(_, rows)] = played([(0, [("plain", "plain")] * (ROWS + 4))])
    ring = begun(transitions_on, uniform, resets).groups[0].ring
    waited, newest_then = [], []

    class Loan:
        def wait_for(self, row: int) -> None:
            waited.append(row)
            newest_then.append(ring.newest)

    ring._loan = Loan()
    for part in (rows[:10], rows[10:16]):
        action, discount, steps, _ = zip(*part, strict=True)
        ring.extend(np.stack(action), np.zeros((len(part), EACH)), np.stack(discount), stacked(steps))
    assert waited == [10 - ROWS, 16 - ROWS]
    assert newest_then == [0, 10]  # before they are stored


def test_first_priorities_do_not_depend_on_how_many_are_added_at_once() -> None:
    error = torch.from_numpy(np.random.Generator(np.random.PCG64(1)).exponential(size=90)).float()
    indices = torch.arange(90)
    at_once, one_at_a_time = prioritized(alpha=0.6), prioritized(alpha=0.6)
    at_once.add(indices, error)
    for index in range(90):
        one_at_a_time.add(indices[index : index + 1], error[index : index + 1])
    assert torch.equal(at_once.priorities(), one_at_a_time.priorities())
