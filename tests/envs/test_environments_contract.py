"""The contract of every environment in the registry, in this process and in workers."""

from dataclasses import fields, replace

import numpy as np
import pytest
from playing import CATCH, PLAIN, as_bytes, copied, play, random_actions

from atari_dqn.envs.games import ENVS
from atari_dqn.types import StepBatch

GAMES = {"atari": "breakout", "catch": "catch", "recall": "recall"}
DTYPES = {"frame": np.uint8, "reward": np.float64} | dict.fromkeys(
    ("terminated", "truncated", "life_lost", "first"), np.bool_
)
LIVELY = replace(
    PLAIN, noop_max_frames=8, sticky_probability=0.25, max_episode_frames=202, screen_size_pixels=44
)


def test_every_environment_is_tested_on_a_game():
    assert set(GAMES) == set(ENVS)


def maker(kind, envs_of):
    def make_one(num_envs=2, workers=0, **env):
        spec = replace(LIVELY, kind=kind, **env)
        return envs_of(game=GAMES[kind], env=spec, num_envs=num_envs, workers=workers)

    return make_one


@pytest.fixture(
    params=[pytest.param(kind, marks=pytest.mark.slow if kind == "atari" else ()) for kind in ENVS]
)
def make(request, envs_of):
    return maker(request.param, envs_of)


@pytest.fixture(
    params=["atari", *(pytest.param(kind, marks=pytest.mark.slow) for kind in sorted({*ENVS} - {"atari"}))]
)
def make_with_workers(request, envs_of):
    """Like `make`; test_pool.py plays the toy game in processes, each of which takes long to start."""
    return maker(request.param, envs_of)


def test_an_empty_part_has_no_environments(envs_of):
    assert envs_of(game="catch", env=CATCH, num_envs=4, part=range(0)).num_envs == 0


def test_step_has_the_declared_shapes_and_types(make):
    envs = make()
    envs.reset()
    row = play(envs, random_actions(envs, 1))[0]
    for field in fields(StepBatch):
        array = getattr(row, field.name)
        assert (array.dtype, array.shape) == (
            DTYPES[field.name],
            (2, 44, 44) if field.name == "frame" else (2,),
        )


def test_reset_sets_first_and_no_other_flag(make):
    row = make().reset()
    assert row.first.all()
    assert not np.any([row.reward, row.ended, row.life_lost])


def test_first_is_set_exactly_after_the_end_of_an_episode(make):
    envs = make()
    rows = [copied(envs.reset()), *play(envs, random_actions(envs, 165))]
    ended = np.array([row.ended for row in rows])
    first = np.array([row.first for row in rows])
    assert ended.sum() >= 6
    assert np.array_equal(first[1:], ended[:-1])


def test_step_before_any_reset_begins_an_episode(make):
    envs = make()
    assert play(envs, random_actions(envs, 1))[0].first.all()


@pytest.mark.parametrize("workers", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_number_of_workers_does_not_change_the_steps(make_with_workers, workers):
    everything = []
    for envs in (make_with_workers(workers=0), make_with_workers(workers=workers)):
        first = as_bytes([envs.reset()])
        everything.append(first + as_bytes(play(envs, random_actions(envs, 100))))
    assert everything[0] == everything[1]


@pytest.mark.parametrize(
    ("workers_before", "workers_after"),
    [(0, 0), *(pytest.param(*workers, marks=pytest.mark.slow) for workers in ((2, 1), (0, 2)))],
)
def test_restored_environments_continue_exactly(make_with_workers, workers_before, workers_after):
    envs = make_with_workers(workers=workers_before)
    actions = random_actions(envs, 100)
    play(envs, actions[:30])
    state = envs.state_dict()
    unbroken = play(envs, actions[30:])
    restored = make_with_workers(workers=workers_after)
    restored.load_state_dict(state)
    assert as_bytes(play(restored, actions[30:])) == as_bytes(unbroken)


def test_state_between_the_end_of_an_episode_and_its_reset_is_restored(make):
    envs = make(num_envs=1, max_episode_frames=40)
    rows = play(envs, random_actions(envs, 100)[:1])
    while not rows[-1].ended[0]:
        rows = play(envs, random_actions(envs, 1))
    restored = make(num_envs=1, max_episode_frames=40)
    restored.load_state_dict(envs.state_dict())
    row = play(restored, random_actions(restored, 1))[0]
    assert row.first[0]
    assert as_bytes([row]) == as_bytes(play(envs, random_actions(envs, 1)))


def test_state_is_plain_data_for_each_environment(make):
    state = make().state_dict()
    assert len(state["lanes"]) == 2
    assert {type(value) for slot in state["lanes"] for value in slot.values()} <= {dict, int, bool}


def test_saving_the_state_does_not_change_later_steps(make):
    saved, unsaved = make(), make()
    actions = random_actions(saved, 60)
    rows = []
    for action in actions:
        rows += play(saved, [action])
        saved.state_dict()
    assert as_bytes(rows) == as_bytes(play(unsaved, actions))


def test_step_does_not_depend_on_later_actions(make):
    one, other = make(), make()
    actions = random_actions(one, 40)
    later = actions.copy()
    later[20:] = 0
    assert as_bytes(play(one, actions)[:20]) == as_bytes(play(other, later)[:20])


def test_closing_twice_is_allowed(make_with_workers):
    envs = make_with_workers(workers=1)
    envs.close()
    assert envs.close() is None
