"""Published weights: readers under load never see a mixture of two versions, and versions never go back."""

import multiprocessing

import numpy as np
import pytest

from atari_dqn.actors.snapshot import SharedSnapshot

SIZE = 50_000


def read(snapshot: SharedSnapshot, last: int, ready, result) -> None:
    """Fetch until the last version; put the number of versions, or -1 for a mixture or a step back."""
    ready.put(True)
    before, seen = -1, 0
    while before < last:
        version, weights = snapshot.fetch(0)
        if version < before or (weights != version).any():
            result.put(-1)
            return
        seen, before = seen + (version > before), version
    result.put(seen)


def versions_per_reader(publishes: int, readers: int) -> list[int]:
    context = multiprocessing.get_context("spawn")
    snapshot, ready, result = SharedSnapshot(SIZE), context.SimpleQueue(), context.SimpleQueue()
    snapshot.publish(0, np.zeros(SIZE, dtype=np.float32))
    arguments = (snapshot, publishes - 1, ready, result)
    processes = [context.Process(target=read, args=arguments) for _ in range(readers)]
    for process in processes:
        process.start()
    for _ in processes:
        ready.get()
    for version in range(1, publishes):
        snapshot.publish(version, np.full(SIZE, version, dtype=np.float32))
    found = [result.get() for _ in processes]
    for process in processes:
        process.join()
    return found


@pytest.mark.fault("M01")
@pytest.mark.slow
def test_readers_under_load_see_whole_versions_in_order() -> None:
    assert all(seen > 1 for seen in versions_per_reader(2_000, 2))


@pytest.mark.fault("M01")
@pytest.mark.thorough
def test_eight_readers_see_whole_versions_of_ten_thousand() -> None:
    assert all(seen > 1 for seen in versions_per_reader(10_000, 8))


def test_weights_of_a_version_that_is_not_published_are_waited_for(monkeypatch) -> None:
    monkeypatch.setattr("atari_dqn.actors.snapshot._LONGEST_WAIT_SECONDS", 0.05)
    snapshot = SharedSnapshot(3)
    snapshot.publish(4, np.zeros(3, dtype=np.float32))
    with pytest.raises(TimeoutError, match="no weights of version 5"):
        snapshot.fetch(5)


@pytest.mark.fault("M01")
def test_weights_that_are_being_overwritten_are_not_fetched(monkeypatch) -> None:
    monkeypatch.setattr("atari_dqn.actors.snapshot._LONGEST_WAIT_SECONDS", 0.05)
    snapshot = SharedSnapshot(3)
    snapshot.publish(4, np.zeros(3, dtype=np.float32))
    snapshot._slots[0][1] = 5.0  # of a later version, whose checksum is not there yet
    with pytest.raises(TimeoutError):
        snapshot.fetch(0)
