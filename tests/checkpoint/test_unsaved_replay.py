"""A checkpoint without the rows of the replay: what a training restores from it."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tiny import CPU, ROLLOUTS, begun, ticks_of, tiny_spec

from atari_dqn.run.checkpoint.layout import layout_of_rest
from atari_dqn.run.checkpoint.state_files import read_rest
from atari_dqn.run.checkpoint.store import CheckpointStore, load_checkpoint
from atari_dqn.train.build import assemble
from atari_dqn.train.training import Training

SPECS = {
    "uniform": (), "prioritized": ("toggles.prioritized=true",), "rollouts": ROLLOUTS,
}  # fmt: skip


@contextmanager
def saved(folder: Path, *overrides: str) -> Iterator[tuple[Training, Path]]:
    """A training that has learned, and its checkpoint without the rows of the replay."""
    with begun(tiny_spec(*overrides)) as training:
        ticks_of(training, 80)
        assert training.learner.updates
        store = CheckpointStore(folder, save_replay=False)
        store.save(step=80, training=training.state_dict(), bookkeeping={}, eval_score=None)
        yield training, store.latest()


def stream(training: Training) -> list[int]:
    state: list[int] = training.replay.sampler.generator.get_state().tolist()
    return state


@pytest.mark.parametrize("overrides", SPECS.values(), ids=SPECS)
def test_training_that_lost_its_replay_draws_no_number_again(tmp_path: Path, overrides) -> None:
    new = assemble(tiny_spec(*overrides), CPU)
    with closing(new) as restored, saved(tmp_path, *overrides) as (training, checkpoint):
        restored.load_state_dict(load_checkpoint(checkpoint, like=restored.state_dict())[0])
        assert stream(restored) == stream(training)


def test_longest_rolling_mean_is_read_from_its_checkpoint(tmp_path: Path) -> None:
    spec = tiny_spec("logging.rolling_episodes=100_000")
    with begun(spec) as training:
        state = training.state_dict()
    state["reporter"]["recent"] = [[-12_345.5, 4_500_000]] * 100_000
    store = CheckpointStore(tmp_path, save_replay=False)
    store.save(step=80, training=state, bookkeeping={}, eval_score=None)
    with closing(assemble(spec, CPU)) as restored:
        restored.load_state_dict(load_checkpoint(store.latest(), like=restored.state_dict())[0])
        assert restored.state_dict()["reporter"]["recent"] == state["reporter"]["recent"]


def test_checkpoint_of_an_earlier_version_begins_the_stream_again(tmp_path: Path) -> None:
    with saved(tmp_path) as (training, checkpoint):
        state = json.loads((checkpoint / "state.json").read_text())
        del state["replay"]["generator"]
        (checkpoint / "state.json").write_text(json.dumps(state))
        with closing(assemble(tiny_spec(), CPU)) as restored:
            new, like = stream(restored), restored.state_dict()
            rest = read_rest(checkpoint, layout_of_rest(like))
            restored.load_state_dict({**rest, "learner": training.learner.state_dict()})
            assert stream(restored) == new
