"""What every environment of the registry must do, wherever its lanes run."""

from dataclasses import fields, replace

import numpy as np
import pytest
from playing import PLAIN, as_bytes, copied, play, random_actions

from atari_dqn.envs.games import ENVS
from atari_dqn.types import StepBatch

GAMES = {"atari": "breakout", "catch": "catch"}
DTYPES = {"frame": np.uint8, "reward": np.float64} | dict.fromkeys(
    ("terminated", "truncated", "life_lost", "first"), np.bool_
)
LIVELY = replace(
    PLAIN, noop_max_frames=8, sticky_probability=0.25, max_episode_frames=402, screen_size_pixels=44
)


def test_every_environment_has_a_game_here():
    assert set(GAMES) == set(ENVS)


@pytest.fixture(params=list(ENVS))
def make(request, lanes_of):
    kind = request.param

    def make_one(num_lanes=2, workers=0, **env):
        spec = replace(LIVELY, kind=kind, **env)
        return lanes_of(game=GAMES[kind], env=spec, num_lanes=num_lanes, workers=workers)

    return make_one


def test_rows_have_the_declared_shapes_and_types(make):
    lanes = make()
    lanes.reset()
    row = play(lanes, random_actions(lanes, 1))[0]
    for field in fields(StepBatch):
        array = getattr(row, field.name)
        assert (array.dtype, array.shape) == (
            DTYPES[field.name],
            (2, 44, 44) if field.name == "frame" else (2,),
        )


def test_reset_row_is_first_and_nothing_else(make):
    row = make().reset()
    assert row.first.all()
    assert not np.any([row.reward, row.ended, row.life_lost])


def test_first_follows_every_ending_and_nothing_else(make):
    lanes = make()
    rows = [copied(lanes.reset()), *play(lanes, random_actions(lanes, 330))]
    ended = np.array([row.ended for row in rows])
    first = np.array([row.first for row in rows])
    assert ended.sum() >= 6
    assert np.array_equal(first[1:], ended[:-1])


def test_step_before_any_reset_begins_an_episode(make):
    lanes = make()
    assert play(lanes, random_actions(lanes, 1))[0].first.all()


def test_workers_do_not_change_a_byte(make):
    everything = []
    for workers in (0, 1, 2):
        lanes = make(workers=workers)
        first = as_bytes([lanes.reset()])
        everything.append(first + as_bytes(play(lanes, random_actions(lanes, 200))))
    assert everything == [everything[0]] * 3


@pytest.mark.parametrize(("workers_before", "workers_after"), [(0, 0), (0, 2), (2, 1)])
def test_restored_lanes_continue_as_if_never_interrupted(make, workers_before, workers_after):
    lanes = make(workers=workers_before)
    actions = random_actions(lanes, 160)
    play(lanes, actions[:80])
    state = lanes.state_dict()
    unbroken = play(lanes, actions[80:])
    restored = make(workers=workers_after)
    restored.load_state_dict(state)
    assert as_bytes(play(restored, actions[80:])) == as_bytes(unbroken)


def test_state_between_an_ending_and_its_reset_restores(make):
    lanes = make(num_lanes=1, max_episode_frames=40)
    rows = play(lanes, random_actions(lanes, 100)[:1])
    while not rows[-1].ended[0]:
        rows = play(lanes, random_actions(lanes, 1))
    restored = make(num_lanes=1, max_episode_frames=40)
    restored.load_state_dict(lanes.state_dict())
    row = play(restored, random_actions(restored, 1))[0]
    assert row.first[0]
    assert as_bytes([row]) == as_bytes(play(lanes, random_actions(lanes, 1)))


def test_state_is_one_plain_entry_a_lane(make):
    state = make().state_dict()
    assert len(state["lanes"]) == 2
    assert {type(value) for lane in state["lanes"] for value in lane.values()} <= {dict, int, bool}


def test_saving_changes_nothing(make):
    saved, unsaved = make(), make()
    actions = random_actions(saved, 60)
    rows = []
    for action in actions:
        rows += play(saved, [action])
        saved.state_dict()
    assert as_bytes(rows) == as_bytes(play(unsaved, actions))


def test_a_steps_row_does_not_depend_on_later_actions(make):
    one, other = make(), make()
    actions = random_actions(one, 40)
    later = actions.copy()
    later[20:] = 0
    assert as_bytes(play(one, actions)[:20]) == as_bytes(play(other, later)[:20])


def test_closing_twice_is_allowed(make):
    lanes = make(workers=1)
    lanes.close()
    assert lanes.close() is None
