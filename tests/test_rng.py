import numpy as np

from atari_dqn.rng import generator_state, numpy_stream, set_generator_state, stream_seed, torch_seed


def test_stream_of_the_same_seed_and_name_is_the_same():
    assert numpy_stream(1, "environment", 3).integers(1 << 30) == numpy_stream(1, "environment", 3).integers(
        1 << 30
    )


def test_seed_of_a_stream_is_the_same_in_every_version():
    # The first 16 bytes of SHA-256("1/policy"): a later version must resume a run with the same numbers.
    assert stream_seed(1, "policy") == 0x462146CF00FFF6051DA0CBFC19067554


def test_streams_differ_by_seed_by_name_and_by_number():
    seeds = {stream_seed(seed, name, slot) for seed in range(3) for name in "ab" for slot in range(3)}
    assert len(seeds) == 18


def test_streams_of_neighbouring_environments_have_no_common_number():
    draws = [numpy_stream(0, "environment", slot).integers(1 << 62, size=100) for slot in range(8)]
    assert len(np.unique(np.concatenate(draws))) == 800


def test_torch_seed_is_in_the_range_of_manual_seed():
    seeds = [torch_seed(seed, "init") for seed in range(1000)]
    assert min(seeds) >= 0
    assert max(seeds) < 2**63


def test_restored_generator_repeats_its_numbers():
    generator = numpy_stream(1, "policy")
    generator.random(7)
    state = generator_state(generator)
    drawn = generator.random(5).tolist()
    other = numpy_stream(2, "another")
    set_generator_state(other, state)
    assert other.random(5).tolist() == drawn


def test_saved_state_does_not_change_with_its_generator():
    generator = numpy_stream(1, "policy")
    state = generator_state(generator)
    first = generator.random()
    set_generator_state(generator, state)
    assert generator.random() == first
