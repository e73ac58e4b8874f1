"""`dqn train` and `dqn resume --on ray` of actors for which nodes have no room: all without a cluster."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tiny import CPU, TINY_CATCH, tiny

from atari_dqn.actors import supervised
from atari_dqn.actors.inline import InlineActors
from atari_dqn.cli import workers
from atari_dqn.cli.resume import resume
from atari_dqn.cli.train import train
from atari_dqn.errors import UserError
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.train import launch

pytest.importorskip("ray")

LOCKSTEP = ["env.num_envs=4", "actors.mode=lockstep", "actors.processes=2", "actors.fragment_steps=6"]


@dataclass(frozen=True)
class FullNode:
    """The node of this machine, on which the learner needs the memory of the second actor."""

    id: str = "own"
    name: str = "here"
    cores: int = 8
    free_ram: int = 900_000_000


class FakeCluster:
    own_node = "own"

    def alive(self) -> Mapping[str, object]:
        return {}

    def describe(self, ids: Sequence[str], path: Path) -> list[FullNode]:
        return [FullNode()]


@pytest.fixture(autouse=True)
def cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def joined(address: str | None, path: Path, *, store_bytes: int) -> Iterator[FakeCluster]:
        yield FakeCluster()

    monkeypatch.setattr(workers, "joined_cluster", joined)
    monkeypatch.setattr(supervised, "actors_of", lambda *_: pytest.fail("the run was not refused"))


def test_a_new_run_without_room_for_actors_and_learner_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has room for 1 \(here 1\)"):
        train(TINY_CATCH, overrides=LOCKSTEP, run_dir=tmp_path / "run", on="ray", device="cpu")
    assert not (tmp_path / "run").exists()


def test_a_resume_without_room_for_actors_and_learner_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run"
    origin = launch.Origin(command_line=["dqn", "train"], hardware=find_hardware(tmp_path))
    launch.start(tiny(*LOCKSTEP), path, device=CPU, views=[], origin=origin, make_actors=InlineActors)
    with pytest.raises(
        UserError, match=r"has room for 1 \(here 1\).*free memory on these: a run that has begun"
    ):
        resume(path, frames="1M", on="ray")
