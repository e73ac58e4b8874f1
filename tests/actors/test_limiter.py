"""The limiter: which side waits, and that both never wait at the same time."""

from hypothesis import given, settings
from hypothesis import strategies as st

from atari_dqn.actors.limiter import Limiter


def limiter(buffer: float = 40.0) -> Limiter:
    return Limiter(samples_per_insert=2.0, min_size=100, error_buffer=buffer)


def test_nothing_is_sampled_before_there_are_enough_inserts() -> None:
    found = limiter()
    found.insert(99)
    assert not found.can_sample(1)
    found.insert(1)
    assert found.can_sample(40)
    assert not found.can_sample(41)


def test_inserts_wait_for_samples_beyond_the_buffer() -> None:
    found = limiter()
    found.insert(100)
    assert found.can_insert(20)
    assert not found.can_insert(21)
    found.sample(2)
    assert found.can_insert(21)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.booleans(), min_size=1, max_size=300))
def test_one_side_may_always_go_on_and_the_ratio_is_held(prefers_samples: list[bool]) -> None:
    found = limiter(buffer=2.0 * 16)
    for prefers in prefers_samples:
        may_insert, may_sample = found.can_insert(16), found.can_sample(8)
        assert may_insert or may_sample
        if may_sample and (prefers or not may_insert):
            found.sample(8)
        else:
            found.insert(16)
        if found.inserts >= 100:
            assert abs((found.inserts - 100) * 2 - found.samples) <= 32 + 2 * 16


def test_a_restored_limiter_continues() -> None:
    saved, restored = limiter(), limiter()
    saved.insert(130)
    saved.sample(30)
    restored.load_state_dict(saved.state_dict())
    assert restored.state_dict() == {"inserts": 130, "samples": 30}


def test_refilled_limiter_waits_for_the_minimum_size_again() -> None:
    found = limiter()
    found.insert(150)
    found.sample(20)
    found.refill()
    found.insert(99)
    assert not found.can_sample(1)
