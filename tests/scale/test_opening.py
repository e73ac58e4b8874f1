"""A sweep begins in a folder of its own, goes on there, and takes up what its file has gained."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.machine.hardware import Gpu, Hardware, find_hardware
from atari_dqn.run.leases.owner import Owner
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.record import read_record
from atari_dqn.scale import auto_values
from atari_dqn.scale.members import load_sweep
from atari_dqn.scale.opening import OpenedSweep, open_sweep, plan_sweep, reopen_sweep
from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.render import resolved_toml

HARDWARE = find_hardware(Path.cwd(), with_gpus=False)
TEXT = 'spec = "catch_smoke"\nseeds = 2\n'
Open = Callable[..., OpenedSweep]


@pytest.fixture
def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the precision of `pong_quick` follow from the processor: by kernels it is fp32 on all."""
    monkeypatch.setattr(auto_values, "_has_kernels", lambda: False)


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    def open_it(
        text: str = TEXT, name: str = "mine", hardware: Hardware = HARDWARE, **more: str
    ) -> OpenedSweep:
        path = tmp_path / f"{name}.toml"
        path.write_text(text)
        return open_sweep(
            load_sweep(path), tmp_path / "runs", device=more.get("device", "cpu"), hardware=hardware
        )

    return open_it


def names(opened: OpenedSweep) -> list[str]:
    return [member.name for member in opened.record.members]


def begin(opened: OpenedSweep, *wanted: str) -> None:
    for name in wanted:
        (opened.folder.path / name).mkdir()


def test_the_record_is_read_as_it_was_written(opened: Open):
    found = opened('game = "atari_5"\nseeds = 2\n[methods.a]\nspec = "c51"\n[methods.b]\nspec = "m_iqn"\n')
    assert len(found.record.members) == 20
    assert reopen_sweep(found.folder.path).record == found.record


def test_infinities_survive_in_the_record(opened: Open):
    found = opened('spec = "catch_smoke"\n[set.gates]\nmax_grad_norm = inf\n')
    (member,) = reopen_sweep(found.folder.path).record.members
    assert member.values["gates.max_grad_norm"] == float("inf")


def test_graphs_that_were_recorded_for_sequences_without_effect_are_read_as_off(opened: Open):
    found = opened('spec = "catch_memory_smoke"\nseeds = 1\n')
    record = found.folder.record
    record.write_text(record.read_text().replace('"system.cuda_graphs": false', '"system.cuda_graphs": true'))
    assert '"system.cuda_graphs": true' in record.read_text()
    assert read_record(record) == found.record


def test_planning_writes_nothing(tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text(TEXT)
    plan_sweep(load_sweep(path), tmp_path / "runs", device="cpu", hardware=HARDWARE)
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.toml"]


def test_a_new_seed_is_added_and_what_began_is_kept(opened: Open):
    first = opened()
    begin(first, "catch_smoke_catch_seed1")
    assert names(opened("spec = 'catch_smoke'\nseeds = 3\n")) == [
        f"catch_smoke_catch_seed{seed}" for seed in (1, 2, 3)
    ]


def test_a_run_that_the_file_has_lost_is_named_if_it_began(opened: Open):
    begin(opened(), "catch_smoke_catch_seed1")
    found = opened("spec = 'catch_smoke'\nseed = [3]\n")
    assert names(found) == ["catch_smoke_catch_seed3"]
    assert [member.name for member in found.record.former] == ["catch_smoke_catch_seed1"]


def test_a_run_that_returns_to_the_file_belongs_again(opened: Open):
    begin(opened(), "catch_smoke_catch_seed1")
    opened("spec = 'catch_smoke'\nseed = [3]\n")
    found = opened()
    assert (names(found)[0], found.record.former) == ("catch_smoke_catch_seed1", ())


def test_a_changed_member_does_not_go_on_in_the_run_of_the_former_one(opened: Open):
    begin(opened(), "catch_smoke_catch_seed1")
    found = opened(TEXT + "[set.learner]\nbatch_size = 16\n")
    (changed, other) = found.record.members
    assert changed.name == f"catch_smoke_catch_seed1_{changed.digest[:8]}"
    assert changed.values["learner.batch_size"] == 16
    assert other.name == "catch_smoke_catch_seed2"
    assert [member.name for member in found.record.former] == ["catch_smoke_catch_seed1"]


def test_a_run_that_another_command_begins_keeps_its_name(opened: Open):
    first = opened()
    assert first.folder.leases.take("catch_smoke_catch_seed1", Owner.current()) is not None
    found = opened(TEXT + "[set.learner]\nbatch_size = 16\n")
    assert names(found)[0] == f"catch_smoke_catch_seed1_{found.record.members[0].digest[:8]}"
    assert [member.name for member in found.record.former] == ["catch_smoke_catch_seed1"]


def test_a_waiting_run_of_a_renamed_method_keeps_its_name_and_a_new_method_gets_another(opened: Open):
    opened("spec = 'catch_smoke'\n[methods.new]\n")
    found = opened("spec = 'catch_smoke'\n[methods.old]\n[methods.new.toggles]\nn_step = 2\n")
    (waiting, new) = found.record.members
    assert waiting.name == "new_catch_seed1"
    assert new.name == f"new_catch_seed1_{new.digest[:8]}"


def test_a_run_that_began_keeps_its_values_where_results_are_the_same(opened: Open):
    begin(opened(), "catch_smoke_catch_seed1")
    found = opened(TEXT + "[set.checkpoint]\nperiod_seconds = 77\n")
    kept = [member.values["checkpoint.period_seconds"] for member in found.record.members]
    assert kept == [600.0, 77.0]


def test_another_sweeps_folder_is_refused(opened: Open):
    opened()
    with pytest.raises(UserError, match="runs: holds the sweep mine, not other; name another with --folder"):
        opened(name="other")


def test_a_folder_of_other_files_is_refused_and_left_as_it_was(opened: Open, tmp_path: Path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "thesis.tex").touch()
    with pytest.raises(UserError, match="holds other files; a sweep begins in a folder of its own"):
        opened()
    assert [entry.name for entry in (tmp_path / "runs").iterdir()] == ["thesis.tex"]


def test_a_folder_whose_beginning_was_killed_is_used(opened: Open, tmp_path: Path):
    SweepFolder(tmp_path / "runs").create()
    assert len(names(opened())) == 2


@pytest.mark.parametrize(
    ("text", "device", "what"),
    [(TEXT + "threads = 2\n", "cpu", "threads 1, found 2"), (TEXT, "cuda", "device cpu, found cuda")],
)
def test_other_rounding_is_refused_once_a_run_has_begun(opened: Open, text: str, device: str, what: str):
    begin(opened(), "catch_smoke_catch_seed1")
    with pytest.raises(UserError, match=f"its runs began with {what}"):
        opened(text, device=device)


@pytest.mark.usefixtures("without_kernels")
def test_auto_is_resolved_once_and_kept_on_another_machine(opened: Open):
    slow, fast = (replace(HARDWARE, cpu_flags=flags) for flags in (("avx2",), ("avx512_bf16",)))
    text = 'spec = "pong_quick"\nseeds = 2\n'
    first = opened(text, hardware=slow)
    assert {choice.key: choice.value for choice in first.choices}["learner.precision"] == "fp32"
    later = opened('spec = "pong_quick"\nseeds = 3\n', hardware=fast)
    assert later.choices == ()
    assert {member.values["learner.precision"] for member in later.record.members} == {"fp32"}


def test_auto_is_resolved_for_each_method(opened: Open):
    methods = '[methods.alone]\nspec = "apex_one_process"\n[methods.actors]\nspec = "apex_small"\n'
    found = opened(f"threads = 2\n{methods}")
    workers = {member.label: member.values["system.workers"] for member in found.record.members}
    assert workers == {"alone": 1, "actors": 0}
    assert [str(choice) for choice in found.choices if choice.key == "system.workers"] == [
        "system.workers = 1 (alone: 1 core beyond the learner's)",
        "system.workers = 0 (actors: actors step their environments themselves)",
    ]


@pytest.mark.usefixtures("without_kernels")
def test_a_method_that_comes_back_keeps_its_values_of_auto(opened: Open):
    slow, fast = (replace(HARDWARE, cpu_flags=flags) for flags in (("avx2",), ("avx512_bf16",)))
    both = '[methods.quick]\nspec = "pong_quick"\n[methods.other]\nspec = "c51"\n'
    begin(opened(both, hardware=slow), "quick_pong_seed1")
    opened('[methods.other]\nspec = "c51"\n', hardware=fast)
    (member, _) = opened(both, hardware=fast).record.members
    assert (member.name, member.values["learner.precision"]) == ("quick_pong_seed1", "fp32")


def test_a_record_with_one_value_of_auto_for_all_members_is_read(opened: Open):
    found = opened()
    record = found.folder.record
    record.write_text(
        record.read_text().replace('"threads": 1,', '"threads": 1, "auto": {"system.workers": 1},')
    )
    assert '"auto"' in record.read_text()
    assert read_record(record) == found.record


THREADS = (
    'learner.threads: found 2, expected "auto" or 1, the threads of each run; write threads = 2 at the top'
)


@pytest.mark.parametrize(
    "text",
    [TEXT + "[set]\nlearner.threads = 2\n", 'spec = "catch_smoke"\n[grid]\nlearner.threads = [1, 2]\n'],
)
def test_other_threads_than_the_sweeps_are_refused_with_the_remedy(opened: Open, tmp_path: Path, text: str):
    with pytest.raises(SpecError, match=re.escape(f"mine.toml: {THREADS}")):
        opened(text)
    assert not (tmp_path / "runs").exists()


def test_a_base_spec_that_fixes_the_same_threads_or_is_set_to_auto_is_taken(opened: Open, tmp_path: Path):
    (tmp_path / "fixed.toml").write_text(resolved_toml(load_spec("catch_smoke", ["learner.threads=2"])))
    with pytest.raises(SpecError, match=re.escape(f'{THREADS}, or learner.threads = "auto" in [set]')):
        opened('spec = "fixed.toml"\n')
    found = opened('spec = "fixed.toml"\n[set]\nlearner.threads = "auto"\n')
    assert found.record.members[0].values["learner.threads"] == 1
    found = opened('spec = "fixed.toml"\nthreads = 2\n')
    assert found.record.members[0].values["learner.threads"] == 2


def test_a_folder_whose_runs_began_with_other_threads_than_the_sweeps_goes_on(
    opened: Open, monkeypatch: pytest.MonkeyPatch
):
    text = TEXT + "[set]\nlearner.threads = 2\n"
    with monkeypatch.context() as earlier:
        earlier.setattr("atari_dqn.scale.opening.threads_problem", lambda *_: None)
        begin(opened(text), "catch_smoke_catch_seed1")
    assert [member.values["learner.threads"] for member in opened(text).record.members] == [2, 2]


@pytest.mark.parametrize("before", ["threads = 8\n", "[set]\nlearner.threads = 8\n"])
def test_recorded_threads_end_with_their_cause_if_no_run_has_begun(
    opened: Open, monkeypatch: pytest.MonkeyPatch, before: str
):
    with monkeypatch.context() as earlier:
        earlier.setattr("atari_dqn.scale.opening.threads_problem", lambda *_: None)
        first = opened(TEXT + before)
    assert first.record.members[0].values["learner.threads"] == 8
    assert [member.values["learner.threads"] for member in opened(TEXT).record.members] == [1, 1]


@pytest.mark.usefixtures("without_kernels")
def test_a_folder_that_another_type_of_device_takes_over_before_any_run_gets_its_auto(opened: Open):
    gpu = Gpu(name="g", memory_bytes=16 * 10**9, memory_free_bytes=16 * 10**9, capability=(9, 0))
    slow = replace(HARDWARE, cpu_flags=("avx2",), gpus=(gpu,))
    text = 'spec = "pong_quick"\n'
    assert opened(text, hardware=slow).record.members[0].values["learner.precision"] == "fp32"
    found = opened(text, hardware=slow, device="cuda")
    assert found.record.members[0].values["learner.precision"] == "bf16"


def test_a_damaged_record_is_refused(opened: Open):
    found = opened()
    found.folder.record.write_text('{"schema_version": 1}')
    with pytest.raises(DamagedError, match=r"record\.json: the document: object missing required field"):
        read_record(found.folder.record)


def test_a_file_system_without_links_is_refused(opened: Open, monkeypatch: pytest.MonkeyPatch):
    def no_link(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", no_link)
    with pytest.raises(UserError, match="its file system has no hard links"):
        opened()
