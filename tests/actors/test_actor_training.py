"""What a learner does with the messages of several actors: each environment has its own ε and episodes."""

from collections.abc import Iterable
from contextlib import closing
from itertools import islice

import numpy as np
from lockstep import begun, lockstep, play
from test_free_running import free
from tiny import CPU, SPECTRUM

from atari_dqn.actors.inline import InlineActors
from atari_dqn.actors.message import Fragment
from atari_dqn.telemetry.events import Row
from atari_dqn.train.build import assemble

Episodes = list[tuple[int, float, int]]
"""Environment, return and steps of each episode."""
_ENVS_PER_ACTOR = 2


def episodes_in(fragments: Iterable[Fragment]) -> Episodes:
    """Add the rewards up, environment by environment, step by step."""
    sums, steps, found = [0.0] * 4, [0] * 4, Episodes()
    for fragment in fragments:
        for row in range(len(fragment.version)):
            for column in range(_ENVS_PER_ACTOR):
                env = fragment.actor * _ENVS_PER_ACTOR + column
                sums[env] += float(fragment.reward[row, column])
                steps[env] += not fragment.first[row, column]
                if fragment.terminated[row, column] or fragment.truncated[row, column]:
                    found.append((env, sums[env], steps[env]))
                    sums[env], steps[env] = 0.0, 0
    return found


def episodes_of(rows: Iterable[Row]) -> Episodes:
    names = ("environment", "episode_return", "episode_length_steps")
    found = (row.values for row in rows if row.table == "train_log")
    return [tuple(values[name] for name in names) for values in found]  # type: ignore[misc]


def reported(played: list) -> tuple[Episodes, Episodes]:
    """Return the episodes that fragments have, and those that were reported."""
    fragments = [iteration.fragment for iteration, _ in played if iteration.fragment is not None]
    return episodes_in(fragments), episodes_of(row for _, rows in played for row in rows)


def test_each_actor_acts_with_the_epsilons_of_its_own_environments() -> None:
    with begun(lockstep(2, SPECTRUM, "training.total_frames=600")) as training:
        latest = {iteration.fragment.actor: iteration.fragment for iteration, _ in play(training)}
        expected = np.asarray(training.exploration.at(0))
    assert len(set(expected.tolist())) == 4
    assert np.concatenate([latest[0].epsilon, latest[1].epsilon]).tolist() == expected.tolist()


def test_the_episodes_of_all_actors_are_reported_with_their_environment_return_and_length() -> None:
    with begun(lockstep(2, "training.total_frames=800")) as training:
        expected, found = reported(play(training))
    assert {env for env, _, _ in expected} == {0, 1, 2, 3}
    assert found == expected


def test_the_episodes_of_actors_that_begin_anew_have_nothing_of_those_before() -> None:
    spec = free(2, "training.total_frames=1_000")
    with begun(spec) as training:
        play(training, 3)  # within the first episodes
        state = training.state_dict()
        assert state["reporter"]["tracker"]["length_steps"].all()
        with closing(assemble(spec, CPU, InlineActors)) as restored:
            restored.load_state_dict(state)
            expected, found = reported(play(restored))
    assert len(found) > 4
    assert found == expected


def test_the_greedy_counts_are_of_the_environment_that_explores_least() -> None:
    with begun(lockstep(2, SPECTRUM, "training.total_frames=800")) as training:
        fragments = [iteration.fragment for iteration, _ in play(training)]
        counts = training.greedy_counts
    last = [fragment for fragment in fragments if fragment.actor == 1]
    actions = np.concatenate([fragment.action[~fragment.first[:, 1], 1] for fragment in last])
    assert counts == tuple(np.bincount(actions, minlength=len(counts)).tolist())


def test_actors_play_as_many_steps_ahead_of_the_updates_as_the_spec_says() -> None:
    spec = free(2, "training.total_frames=1_000")
    with begun(spec) as training:
        ahead = [
            training.clock.steps
            - spec.replay.prefill_steps
            - training.clock.updates * spec.learner.update_period_steps
            for _ in islice(training.iterations(), 300)
        ]
    assert 40 - 5 * _ENVS_PER_ACTOR < max(ahead) <= 40
