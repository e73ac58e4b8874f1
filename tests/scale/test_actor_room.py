"""Which clusters have room for the actors of a run, and what is refused before it starts: all without Ray."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from forked import CommandServer, Finished
from tiny import CPU, tiny_spec

from atari_dqn.cli.actors_on_ray import check_fits_on_nodes
from atari_dqn.errors import UserError
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.machine.plan import make_plan
from atari_dqn.scale.on_ray.actor_room import LearnerNeed, actor_need, check_actors_fit, store_bytes

FREE = (
    "env.num_envs=8",
    "actors.mode=free_running",
    "actors.fragment_steps=5",
    "actors.error_buffer_steps=100",
)
GB = 10**9


@dataclass(frozen=True)
class Room:
    name: str
    cores: int
    free_ram: int

    @property
    def id(self) -> str:
        return f"id of {self.name}"


ELSEWHERE = LearnerNeed(node="id of none of them", ram=GB)


def actors(count: int, per_core: int = 1):
    return tiny_spec(*FREE, f"actors.processes={count}", f"system.actors_per_core={per_core}")


def test_as_many_actors_as_cores_fit():
    check_actors_fit(actors(4), [Room("a", 1, GB), Room("b", 3, 2 * GB)], ELSEWHERE)


def test_fewer_cores_than_actors_are_refused_with_each_nodes_room():
    with pytest.raises(UserError, match=r"is 4, and the cluster has room for 3 \(a 1, b 2\)"):
        check_actors_fit(actors(4), [Room("a", 1, 9 * GB), Room("b", 2, 9 * GB)], ELSEWHERE)


def test_actors_share_cores_as_far_as_the_spec_lets_them():
    check_actors_fit(actors(4, per_core=2), [Room("a", 2, 9 * GB)], ELSEWHERE)


def test_more_memory_than_a_node_has_is_refused():
    need = actor_need(actors(2)).ram
    with pytest.raises(UserError, match=r"room for 1 \(a 1\): an actor needs 3\d\d.* of RAM"):
        check_actors_fit(actors(2), [Room("a", 8, 2 * need - 1)], ELSEWHERE)


def test_actors_share_the_memory_of_this_machine_with_the_learner():
    nodes = [Room("here", 8, GB + 3 * actor_need(actors(4)).ram), Room("there", 1, 9 * GB)]
    check_actors_fit(actors(4), nodes, LearnerNeed(node="id of here", ram=GB))
    with pytest.raises(
        UserError, match=r"room for 3 \(here 2, there 1\): .* the learner 1.10 GB of this mac"
    ):
        check_actors_fit(actors(4), nodes, LearnerNeed(node="id of here", ram=11 * GB // 10))


def test_a_learner_that_needs_all_memory_leaves_none_for_actors():
    with pytest.raises(UserError, match=r"room for 0 \(here 0\)"):
        check_actors_fit(actors(2), [Room("here", 8, GB)], LearnerNeed(node="id of here", ram=2 * GB))


@pytest.mark.parametrize("learner_here", [True, False])
def test_a_run_on_a_cluster_fits_if_its_actors_do_with_its_learner(tmp_path: Path, learner_here: bool):
    spec = tiny_spec(*FREE, "actors.processes=2", "learner.threads=1", "replay.capacity_steps=100_000")
    hardware = replace(find_hardware(tmp_path), memory_available_bytes=9 * GB, disk_free_bytes=9 * GB)
    learner = make_plan(spec, num_actions=18, device="cpu", hardware=hardware, actors_here=False).bytes("ram")
    nodes = [Room("here", 8, learner + actor_need(spec).ram)]
    own_node = "id of here" if learner_here else "another"
    with pytest.raises(UserError, match="room for 1") if learner_here else nullcontext():
        check_fits_on_nodes(nodes, own_node, spec, CPU, hardware, None)


@pytest.mark.parametrize(("per_core", "share"), [(1, 1.0), (8, 0.125), (3, 0.3333)])
def test_the_shares_of_actors_are_within_a_core_as_ray_counts_it(per_core: int, share: float):
    assert actor_need(actors(2, per_core)).core_share == share


def test_the_store_holds_the_messages_on_their_way_twice_and_versions_of_the_weights():
    spec = actors(4)
    hardware = find_hardware(Path())
    plan = make_plan(spec, num_actions=18, device="cpu", hardware=hardware, actors_here=False)
    (messages,) = [item.bytes for item in plan.items if item.name == "messages of actors"]
    assert store_bytes(spec) > 2 * messages
    assert "actors" not in {item.name for item in plan.items}


@pytest.fixture
def train(command_server: CommandServer, tmp_path: Path) -> Callable[..., Finished]:
    return lambda *words: command_server.run("train", *words, cwd=tmp_path)


BAD = {
    ("catch_smoke", "--on", "ray"): "--on ray: expected a spec with actors, such as `apex_small`",
    ("apex_small", "--on", "moon"): "--on: found 'moon', expected local or ray",
    ("apex_small", "--address", "127.0.0.1:1"): "--address: expected with --on ray",
    ("apex_small", "--on", "ray", "--plan"): "--on ray: expected without --plan",
    ("apex_small", "--on", "ray", "--address", "x"): "--address: found 'x', expected HOST:PORT",
    ("apex_small", "--on", "ray", "--address", "10.0.0.1:6379"): "10.0.0.1 is reached over the network",
    ("apex_small", "--on", "ray", "--address", "127.0.0.1:1"): "nothing answers at 127.0.0.1:1",
}


@pytest.mark.parametrize("words", BAD, ids=" ".join)
def test_bad_input_is_one_message_and_starts_nothing(
    train: Callable[..., Finished], tmp_path: Path, words: tuple[str, ...]
):
    refused = train(*words)
    assert (refused.code, refused.out) == (UserError.exit_code, "")
    assert BAD[words] in refused.err
    assert len(refused.err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
