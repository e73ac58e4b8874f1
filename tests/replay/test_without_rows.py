"""A replay that begins again without its rows continues the random stream of its sampler."""

from typing import Any

import pytest
import torch
from histories import History
from test_groups import EACH, alone, grouped, transitions_on

from atari_dqn.replay.groups import GroupedReplay
from atari_dqn.replay.sampling import Sampling

MAKERS = {"one group": alone, "two groups": grouped}


def sampled(make) -> Sampling[Any]:
    """Return a replay from which two minibatches were sampled."""
    replay = make(transitions_on)
    for part in replay.groups if isinstance(replay, GroupedReplay) else [replay]:
        history = History(part, EACH)
        for _ in range(12):
            history.play(("plain", "plain"))
    replay.prepare(0)
    replay.sample()
    replay.sample()
    return replay


def numbers(replay: Sampling[Any]) -> list[float]:
    """Draw the next random numbers of the sampler's stream."""
    return torch.rand(3, generator=replay.sampler.generator, dtype=torch.float64).tolist()


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_replay_without_rows_continues_the_stream_of_its_sampler(make) -> None:
    saved, restored = sampled(make), make(transitions_on)
    state = saved.state_dict()
    frame, stream = state["ring"]["newest_frame"].numpy(), state["sampler"]["generator"]
    restored.load_state_dict({"newest_frame": frame, "generator": stream})
    assert numbers(restored) == numbers(saved)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_replay_of_an_earlier_version_without_rows_begins_its_stream_again(make) -> None:
    saved, restored = sampled(make), make(transitions_on)
    restored.load_state_dict({"newest_frame": saved.state_dict()["ring"]["newest_frame"].numpy()})
    assert numbers(restored) == numbers(make(transitions_on))
