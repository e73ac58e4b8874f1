"""What an actor run is refused for, in words, before it starts."""

import pytest
from tiny import tiny_spec

from atari_dqn.errors import UserError
from atari_dqn.machine.actors import actor_items, check_cores
from atari_dqn.spec.digest import spec_digest
from atari_dqn.spec.errors import SpecError

FREE = ("env.num_envs=4", "actors.mode=free_running", "actors.processes=2", "actors.error_buffer_steps=200")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("env.num_envs=5",), r"env\.num_envs: found 5 with actors\.processes = 2.*multiple"),
        (("actors.error_buffer_steps=3",), r"found 3 with learner\.update_period_steps = 4.*one update"),
        (("actors.error_buffer_steps=99",), r"found 99 with actors\.fragment_steps = 50.*one message"),
        (("replay.prefill_steps=151",), r"prefill_steps: found 151 with replay\.capacity_steps = 150"),
        (("actors.max_lag_updates=9",), r"publish_period_updates: found 10 with actors\.max_lag_updates = 9"),
        (("system.workers=2",), r"system\.workers: found 2 with actors\.processes = 2.*set the first to 0"),
        (("system.cuda_graphs=true",), r"system\.cuda_graphs: found true.*set the first to false"),
        (("learner.compile=true",), r"learner\.compile: found true.*set the first to false"),
        (
            ("actors.mode=lockstep",),
            r"actors\.error_buffer_steps: belongs to actors\.mode = \"free_running\"",
        ),
        (("actors.mode=none",), r"actors\.processes: belongs to actors\.mode other than \"none\""),
    ],
)
def test_a_run_of_actors_that_cannot_work_is_refused(overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(SpecError, match=f"(?s){message}"):
        tiny_spec(*FREE, *overrides)


def test_lockstep_without_a_saved_replay_is_refused() -> None:
    message = r'checkpoint\.replay: found false with actors\.mode = "lockstep"; .* set the first to true'
    with pytest.raises(SpecError, match=message):
        tiny_spec("env.num_envs=4", "actors.mode=lockstep", "actors.processes=2", "checkpoint.replay=false")


def test_a_spectrum_that_leaves_no_greedy_actor_is_refused() -> None:
    spectrum = (
        "exploration.kind=spectrum", "exploration.spectrum_base=0.9", "exploration.spectrum_exponent=2",
    )  # fmt: skip
    with pytest.raises(SpecError, match="last environment must be greedy enough"):
        tiny_spec(*FREE, *spectrum)


def test_more_actors_than_cores_are_refused_unless_they_share_them() -> None:
    with pytest.raises(
        UserError, match=r"actors\.processes is 2, and this machine has 1 core for 1 actor each.*share cores"
    ):
        check_cores(tiny_spec(*FREE), cores=1)
    check_cores(tiny_spec(*FREE, "system.actors_per_core=2"), cores=1)


def test_run_that_has_begun_is_to_be_resumed_where_its_actors_have_cores() -> None:
    with pytest.raises(UserError, match=r"resume it on 2 cores, or with --on ray: a run that has begun"):
        check_cores(tiny_spec(*FREE), cores=1, has_begun=True)


def test_memory_of_actors_is_planned() -> None:
    items = actor_items(tiny_spec(*FREE), weights_bytes=10_000_000, actors_here=True)
    sizes = {item.key: item.bytes for item in items}
    assert sizes["actors.processes"] == 2 * 360_000_000
    assert sizes["actors.fragment_steps"] == 2 * 2 * 100 * (36 * 36 + 28)


@pytest.mark.parametrize("actors_here", [True, False])
def test_memory_of_the_evaluator_is_planned_wherever_actors_play(actors_here: bool) -> None:
    items = actor_items(tiny_spec(*FREE), weights_bytes=10_000_000, actors_here=actors_here)
    assert [item.bytes for item in items if item.name == "evaluator"] == [360_000_000]


def test_runs_without_actors_keep_their_digest() -> None:
    assert spec_digest(tiny_spec()) == spec_digest(tiny_spec("actors.mode=none"))
    assert spec_digest(tiny_spec("env.num_envs=2")) != spec_digest(
        tiny_spec("env.num_envs=2", "actors.mode=lockstep")
    )
