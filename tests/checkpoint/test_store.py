import errno
import json
import os
import pickle
import shutil
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from full_disk import largest_file
from states import training_state

from atari_dqn.errors import DamagedError, DiskFullError, InfrastructureError, UserError
from atari_dqn.files.atomic import sha256_of_file
from atari_dqn.run.checkpoint import stages
from atari_dqn.run.checkpoint.manifest import sealed, verify
from atari_dqn.run.checkpoint.reconcile import checkpoint_directories, later_agents, reconcile
from atari_dqn.run.checkpoint.rewind import named_checkpoint, rewind
from atari_dqn.run.checkpoint.stages import restore_replaced
from atari_dqn.run.checkpoint.state_files import read_agent
from atari_dqn.run.checkpoint.state_tree import tree_digest
from atari_dqn.run.checkpoint.store import CheckpointStore, load_checkpoint


def save(store: CheckpointStore, step: int, score: float | None = None, **bookkeeping: Any) -> str:
    return store.save(step=step, training=training_state(step), bookkeeping=bookkeeping, eval_score=score)


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    return CheckpointStore(tmp_path / "checkpoints", keep_last=1)


def raise_no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_loaded_state_has_the_saved_ones_digest(store: CheckpointStore) -> None:
    digest = save(store, 7)
    training, _ = load_checkpoint(store.latest())
    assert tree_digest(training) == digest == tree_digest(training_state(7))


def test_bookkeeping_comes_back_and_is_not_in_the_digest(store: CheckpointStore, tmp_path: Path) -> None:
    other = CheckpointStore(tmp_path / "other")
    assert save(store, 7, elapsed_seconds=1.5) == save(other, 7, elapsed_seconds=99.0)
    assert load_checkpoint(store.latest())[1] == {"elapsed_seconds": 1.5}


def test_manifest_has_the_sha256_of_every_other_file_and_the_state_digest(store: CheckpointStore) -> None:
    digest = save(store, 7)
    directory = store.latest()
    manifest = json.loads((directory / "manifest.json").read_text())
    files = [path for path in directory.rglob("*") if path.is_file() and path.name != "manifest.json"]
    assert manifest["state_digest"] == digest
    assert {name: entry["sha256"] for name, entry in manifest["files"].items()} == {
        path.relative_to(directory).as_posix(): sha256_of_file(path) for path in files
    }
    assert len(files) == 7  # agent.pt, state.json, four arrays, one segment of the replay


@pytest.mark.fault("D17")
def test_catalog_entry_has_step_path_score_and_time_in_utc(store: CheckpointStore) -> None:
    before = datetime.now(UTC).replace(microsecond=0)  # as it is recorded
    store.save(
        step=500_000, training=training_state(), bookkeeping={}, eval_score=12.5, protocol="9fb95e78823e"
    )
    (entry,) = json.loads((store.folder / "catalog.json").read_text())["entries"]
    recorded = datetime.fromisoformat(entry.pop("timestamp"))
    assert entry == {
        "step": 500_000, "path": "step_000500000", "eval_score": 12.5, "tag": None,
        "protocol": "9fb95e78823e",
    }  # fmt: skip
    assert recorded.utcoffset() == before.utcoffset()
    assert before <= recorded <= datetime.now(UTC)


def test_newest_and_best_are_symlinks(store: CheckpointStore) -> None:
    for step, score in ((1, 3.0), (2, 9.0), (3, 5.0)):
        save(store, step, score)
    links = {name: str((store.folder / name).readlink()) for name in ("latest", "best")}
    assert links == {"latest": "step_000000003", "best": "step_000000002"}


def test_manifest_with_the_games_of_a_long_run_is_read(store: CheckpointStore) -> None:
    games = "1" * (2**24 + 1)
    save(store, 1, games=games)
    assert load_checkpoint(store.latest())[1]["games"] == games


def test_copy_of_a_checkpoint_in_place_of_a_link_becomes_a_link(
    store: CheckpointStore, tmp_path: Path
) -> None:
    save(store, 1, 3.0)
    copy = shutil.copytree(store.folder, tmp_path / "copy", symlinks=False)  # as `scp -r` copies
    save(CheckpointStore(copy), 2)
    links = {name: str((copy / name).readlink()) for name in ("latest", "best")}
    assert links == {"latest": "step_000000002", "best": "step_000000001"}


def test_checkpoint_after_a_billion_steps_is_the_newest(store: CheckpointStore) -> None:
    save(store, 900_000_000, 9.0)
    save(store, 1_000_000_000)
    found = reconcile(store.folder)
    assert [entry.step for entry in found.entries] == [900_000_000, 1_000_000_000]
    assert checkpoint_directories(store.folder)[-1].name == "step_1000000000"


def test_catalog_lost_with_a_checkpoint_after_a_billion_steps_names_it(store: CheckpointStore) -> None:
    save(store, 900_000_000, 9.0)
    save(store, 1_000_000_000)
    (store.folder / "catalog.json").unlink()
    (store.latest() / "manifest.json").write_text("none")
    assert reconcile(store.folder).lost == store.folder / "step_1000000000"


def test_going_back_removes_a_checkpoint_after_a_billion_steps(store: CheckpointStore) -> None:
    save(store, 900_000_000, 9.0)
    save(store, 1_000_000_000)
    assert later_agents(store.folder, 900_000_000) == ["step_1000000000"]


def test_checkpoint_that_the_catalog_could_not_list_goes_with_the_next_one(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(store, 1)
    with monkeypatch.context() as patch:
        patch.setattr(stages, "add_to_catalog", raise_no_space)
        with pytest.raises(DiskFullError):
            save(store, 2)
    assert "step_000000002" in names(store.folder)
    save(store, 3)
    assert names(store.folder) == ["catalog.json", "latest", "step_000000003"]


def test_of_equal_scores_the_earliest_is_best(store: CheckpointStore) -> None:
    for step in (1, 2):
        save(store, step, 4.0)
    assert (store.folder / "best").readlink() == Path("step_000000001")


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 3)])
@pytest.mark.parametrize("kind", [np.bool_, np.int16, np.float64])
def test_arrays_of_every_shape_and_kind_come_back(store: CheckpointStore, shape, kind) -> None:
    array = np.ones(shape, dtype=kind)
    store.save(step=1, training=training_state() | {"array": array}, bookkeeping={}, eval_score=None)
    found = load_checkpoint(store.latest())[0]["array"]
    assert (found.dtype, found.shape, found.tolist()) == (array.dtype, array.shape, array.tolist())


def test_run_without_a_score_has_no_best(store: CheckpointStore) -> None:
    save(store, 1)
    assert not (store.folder / "best").is_symlink()


def test_checkpoint_leaves_the_catalog_before_its_files_are_removed(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    save(store, 1)
    monkeypatch.setattr("atari_dqn.run.checkpoint.removal.remove", kill)
    with pytest.raises(KeyboardInterrupt):
        save(store, 2)
    assert [entry.step for entry in store.catalog()] == [2]


def test_run_that_goes_back_to_before_its_first_score_has_no_best(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep_last=2)
    save(store, 1)
    save(store, 2, 9.0)
    rewind(store, 1)
    assert names(tmp_path) == ["catalog.json", "latest", "step_000000001"]


def test_older_checkpoints_go_but_the_best_stays(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep_last=2)
    for step, score in enumerate((1.0, 9.0, 3.0, 4.0, 5.0), start=1):
        save(store, step, score)
    kept = ["step_000000002", "step_000000004", "step_000000005"]
    assert names(tmp_path) == ["best", "catalog.json", "latest", *kept]
    assert [entry.path for entry in store.catalog()] == kept


@pytest.mark.fault("D03")
def test_newest_checkpoint_with_a_tag_is_kept_to_be_inspected(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep_last=1)
    for step, score, tag in ((1, 9.0, None), (2, 1.0, "inspect"), (3, 1.0, "inspect"), (4, 1.0, None)):
        store.save(step=step, training=training_state(step), bookkeeping={}, eval_score=score, tag=tag)
    assert [(entry.step, entry.tag) for entry in store.catalog()] == [(1, None), (3, "inspect"), (4, None)]


def test_saving_a_step_again_keeps_its_score(store: CheckpointStore) -> None:
    save(store, 1, 8.0)
    save(store, 1)  # interrupted right after a full evaluation
    assert [entry.eval_score for entry in store.catalog()] == [8.0]


def test_score_may_come_after_its_checkpoint(store: CheckpointStore) -> None:
    save(store, 1)  # interrupted inside the evaluation, which is then played again
    save(store, 1, 8.0)
    assert [entry.eval_score for entry in store.catalog()] == [8.0]
    assert (store.folder / "best").readlink() == Path("step_000000001")


def test_directory_that_the_catalog_does_not_list_is_written_anew(store: CheckpointStore) -> None:
    (store.folder / "step_000000001").mkdir(parents=True)
    (store.folder / "step_000000001" / "left_over").touch()
    save(store, 1)
    verify(store.latest())
    assert not (store.latest() / "left_over").exists()


def test_resumed_run_outlives_a_later_entry_that_never_became_the_latest(store: CheckpointStore) -> None:
    save(store, 1)
    save(store, 5)
    (store.folder / "latest").unlink()
    (store.folder / "latest").symlink_to("step_000000001")  # a crash between the catalog and the link
    save(store, 3)
    verify(store.latest())
    assert store.latest().name == "step_000000003"


def test_run_without_a_checkpoint_yet_says_how_it_gets_one(store: CheckpointStore) -> None:
    with pytest.raises(UserError, match=r"no checkpoint is saved yet; wait for the .*`dqn resume .*` if"):
        store.latest()


def test_lost_link_to_the_latest_is_not_needed(store: CheckpointStore) -> None:
    save(store, 7)
    (store.folder / "latest").unlink()
    assert store.latest().name == "step_000000007"


@pytest.mark.parametrize("target", ["../other/step_000000007", "latest", "moved"])
def test_link_to_anything_but_a_checkpoint_of_the_run_is_damaged(store: CheckpointStore, target: str) -> None:
    save(store, 7)
    save(CheckpointStore(store.folder.parent / "other"), 7)
    (store.folder / "latest").unlink()
    (store.folder / "latest").symlink_to(target)
    with pytest.raises(DamagedError, match=rf"latest: points to {target}, which is not a checkpoint of this"):
        store.latest()
    with pytest.raises(UserError, match=r"no checkpoint 'latest'; there are: step_000000007$"):
        named_checkpoint(store, "latest")


def test_checkpoint_without_its_manifest_is_damaged(store: CheckpointStore) -> None:
    save(store, 7)
    (store.latest() / "manifest.json").unlink()
    with pytest.raises(DamagedError, match=r"manifest\.json: missing"):
        store.latest()


SEGMENT = "replay/000000000000-000000000003.zst"
FILES = ["agent.pt", "state.json", SEGMENT, "arrays/returns.npy"]


@pytest.mark.parametrize("name", FILES)
def test_flipped_bit_is_found_and_its_file_named(store: CheckpointStore, name: str) -> None:
    save(store, 1)
    path = store.latest() / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedError, match=rf"{name}: differs from manifest\.json"):
        load_checkpoint(store.latest())


@pytest.mark.parametrize("name", FILES)
def test_truncated_file_is_found_and_named(store: CheckpointStore, name: str) -> None:
    save(store, 1)
    os.truncate(store.latest() / name, 10)
    with pytest.raises(DamagedError, match=rf"{name}: differs from manifest\.json"):
        load_checkpoint(store.latest())


@pytest.mark.parametrize("name", FILES)
def test_missing_file_is_found_and_named(store: CheckpointStore, name: str) -> None:
    save(store, 1)
    (store.latest() / name).unlink()
    with pytest.raises(DamagedError, match=rf"{name}: missing|its replay is missing: {name}"):
        load_checkpoint(store.latest())


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema_version": 2}'])
def test_manifest_that_is_none_is_damage(store: CheckpointStore, text: str) -> None:
    save(store, 1)
    (store.latest() / "manifest.json").write_text(text)
    with pytest.raises(DamagedError, match=r"manifest\.json: is not a manifest"):
        load_checkpoint(store.latest())


def test_manifest_of_another_version_is_refused(store: CheckpointStore) -> None:
    save(store, 1)
    manifest = json.loads((store.latest() / "manifest.json").read_text()) | {"schema_version": 1}
    (store.latest() / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(
        DamagedError, match=r"schema version 1; this program reads 2: continue with the version"
    ):
        load_checkpoint(store.latest())


def test_folder_without_a_manifest_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is not a checkpoint: it contains no manifest\.json"):
        load_checkpoint(tmp_path)


@pytest.mark.parametrize("text", ["{", "7", '[{"step": 1}]'])
def test_catalog_that_is_none_is_damage(store: CheckpointStore, text: str) -> None:
    save(store, 1)
    (store.folder / "catalog.json").write_text(text)
    with pytest.raises(DamagedError, match=r"catalog\.json: is not a catalog"):
        store.catalog()


@pytest.mark.parametrize("path", ["step_000000001/../..", "step_000000002", "/"])
def test_catalog_that_lists_any_other_directory_is_damage(store: CheckpointStore, path: str) -> None:
    save(store, 1)
    catalog = store.folder / "catalog.json"
    (entry,) = json.loads(catalog.read_text())["entries"]
    catalog.write_text(json.dumps([entry | {"path": path}]))
    with pytest.raises(DamagedError, match=f"it lists '{path}'"):
        store.catalog()


def test_catalog_that_lists_a_step_twice_is_damage(store: CheckpointStore) -> None:
    save(store, 1)
    catalog = store.folder / "catalog.json"
    catalog.write_text(json.dumps(2 * json.loads(catalog.read_text())["entries"]))
    with pytest.raises(DamagedError, match="step 1 comes after step 1"):
        store.catalog()


class Hostile:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.mark.fault("D18")
@pytest.mark.parametrize("by", ["torch", "pickle"])
def test_hostile_pickle_runs_nothing_and_is_refused(store: CheckpointStore, tmp_path: Path, by: str) -> None:
    save(store, 1)
    path, victim = store.latest() / "agent.pt", tmp_path / "made_by_the_pickle"
    if by == "torch":
        torch.save({"online": Hostile(victim)}, path)
    else:
        path.write_bytes(pickle.dumps(Hostile(victim), protocol=2))
    vouch_for(store.latest(), "agent.pt")
    with pytest.raises(DamagedError, match=r"agent\.pt: cannot be read as weights"):
        load_checkpoint(store.latest())
    assert not victim.exists()


@pytest.mark.fault("D18")
def test_hostile_array_runs_nothing_and_is_refused(store: CheckpointStore, tmp_path: Path) -> None:
    save(store, 1)
    name, victim = "arrays/returns.npy", tmp_path / "made_by_the_pickle"
    np.save(store.latest() / name, np.array([Hostile(victim)], dtype=object), allow_pickle=True)
    vouch_for(store.latest(), name)
    with pytest.raises(DamagedError, match=r"returns\.npy: cannot be read as an array: found object"):
        load_checkpoint(store.latest())
    assert not victim.exists()


def vouch_for(directory: Path, name: str) -> None:
    """Update the SHA-256 of a file in the manifest, as an attacker would."""
    manifest = json.loads((directory / "manifest.json").read_text())
    path = directory / name
    manifest["files"][name] = {"sha256": sha256_of_file(path), "bytes": path.stat().st_size}
    (directory / "manifest.json").write_text(json.dumps(sealed(manifest)))


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 and no more", b"\x80\x02."])
def test_file_that_holds_no_weights_is_damage(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "agent.pt").write_bytes(data)
    with pytest.raises(DamagedError, match=r"agent\.pt: cannot be read as weights"):
        read_agent(tmp_path)


def test_weights_are_read_into_ram_wherever_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    torch.save({}, tmp_path / "agent.pt")
    monkeypatch.setattr(torch, "load", lambda path, **choices: asked.append(choices["map_location"]) or {})
    read_agent(tmp_path)
    assert asked == ["cpu"]


@pytest.mark.fault("P13")
@pytest.mark.parametrize("size", [100, 900, 2_000])
def test_write_that_fails_leaves_the_earlier_checkpoint_whole(store: CheckpointStore, size: int) -> None:
    save(store, 1, 4.0)
    before = names(store.folder)
    with largest_file(size), pytest.raises(UserError, match=r"cannot write .*step_000000002: file too large"):
        store.save(
            step=2,
            training=training_state(2) | {"more": [np.zeros(size)]},
            bookkeeping={"words": "w" * size},
            eval_score=None,
        )
    assert names(store.folder) == before
    load_checkpoint(store.latest())


@pytest.mark.fault("P13")
@pytest.mark.parametrize(
    "fails",
    [
        "atari_dqn.run.checkpoint.state_files.write_array",
        "atari_dqn.run.checkpoint.stages.flush",
        "pathlib.Path.rename",
    ],
)
def test_full_disk_is_a_users_error_and_leaves_nothing_partial(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    save(store, 1)
    before = names(store.folder)
    with monkeypatch.context() as patch:
        patch.setattr(fails, refuse)
        with pytest.raises(DiskFullError, match=r"step_000000002: no space left .*; free space"):
            save(store, 2)
    assert names(store.folder) == before


def begin_again(store: CheckpointStore) -> str:
    """Save the changed state of step 1, and return its digest."""
    store.begin(step=1, training=training_state(9), bookkeeping={}, eval_score=None, replaces=True)
    saved = store.finish()
    assert saved is not None
    return saved.state_digest


def fail_second_rename(patch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Raise an error after the checkpoint of step 1 is renamed, before another gets its name."""
    rename = Path.rename

    def rename_or_fail(path: Path, target: Path) -> Path:
        if path.name == ".step_000000001.partial":
            raise error
        return rename(path, target)

    patch.setattr(Path, "rename", rename_or_fail)


def test_changed_state_of_a_saved_step_replaces_its_checkpoint(store: CheckpointStore) -> None:
    former = save(store, 1)
    digest = begin_again(store)
    assert digest != former
    assert tree_digest(load_checkpoint(store.latest())[0]) == digest
    assert names(store.folder) == ["catalog.json", "latest", "step_000000001"]


def test_checkpoint_with_a_score_is_not_replaced(store: CheckpointStore) -> None:
    digest = save(store, 1, 7.5)
    is_saved = store.begin(step=1, training=training_state(9), bookkeeping={}, eval_score=None, replaces=True)
    store.wait()
    assert not is_saved
    assert [entry.eval_score for entry in store.catalog()] == [7.5]
    assert tree_digest(load_checkpoint(store.latest())[0]) == digest


def test_checkpoint_stays_if_the_one_in_its_place_cannot_be_renamed(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = save(store, 1)
    with monkeypatch.context() as patch:
        fail_second_rename(patch, OSError(errno.EIO, "Input/output error"))
        with pytest.raises(UserError, match="input/output error"):
            begin_again(store)
    assert tree_digest(load_checkpoint(store.latest())[0]) == former


def test_checkpoint_that_a_killed_process_was_replacing_has_its_name_again(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    former = save(store, 1)
    with monkeypatch.context() as patch:
        fail_second_rename(patch, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            begin_again(store)
    assert "step_000000001" not in names(store.folder)
    restore_replaced(store.folder)
    assert tree_digest(load_checkpoint(store.latest())[0]) == former


@pytest.mark.fault("P13")
def test_process_killed_in_a_save_leaves_a_partial_directory_that_the_next_save_replaces(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    save(store, 1)
    with monkeypatch.context() as patch:
        patch.setattr("atari_dqn.run.checkpoint.stages.flush", kill)
        with pytest.raises(KeyboardInterrupt):
            save(store, 2)
    assert store.latest().name == "step_000000001"
    save(store, 2)
    verify(store.latest())
    assert ".step_000000002.partial" not in names(store.folder)


def test_bookkeeping_of_a_saved_step_is_written_again(store: CheckpointStore) -> None:
    save(store, 1, finished=False)
    save(store, 1, finished=True)
    assert load_checkpoint(store.latest())[1] == {"finished": True}


def test_bookkeeping_that_is_saved_is_that_of_the_snapshot_though_training_goes_on(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rest = stages.write_rest
    changed = threading.Event()

    def write_late(*arguments: Any) -> None:
        assert changed.wait(timeout=30)
        write_rest(*arguments)

    monkeypatch.setattr(stages, "write_rest", write_late)
    bookkeeping = {"tables": {"train_log": 100}}
    store.begin(step=1, training=training_state(), bookkeeping=bookkeeping, eval_score=None)
    bookkeeping["tables"]["train_log"] = 200
    changed.set()
    store.finish()
    assert load_checkpoint(store.latest())[1] == {"tables": {"train_log": 100}}


def test_flipped_bit_in_the_bookkeeping_is_found(store: CheckpointStore) -> None:
    save(store, 1, elapsed_seconds=1.5)
    manifest = store.latest() / "manifest.json"
    manifest.write_text(manifest.read_text().replace("1.5", "2.5"))
    with pytest.raises(DamagedError, match=r"manifest\.json: is not what was written"):
        load_checkpoint(store.latest())


def test_what_a_dead_process_left_is_tidied_and_nothing_else(store: CheckpointStore) -> None:
    save(store, 1)
    (store.folder / ".step_000000002.partial" / "arrays").mkdir(parents=True)
    (store.folder / "step_000000003").mkdir()
    (store.folder / ".latest.partial").symlink_to("step_000000003")
    (store.folder / "step_000000001_before_a_change").mkdir()
    (store.folder / "step_000000001.tar").touch()
    store.tidy()
    of_the_user = {"step_000000001_before_a_change", "step_000000001.tar"}
    assert set(names(store.folder)) == {"step_000000001", "catalog.json", "latest", *of_the_user}


@pytest.mark.parametrize(
    ("error", "reported"),
    [
        (MemoryError(), InfrastructureError),
        (RuntimeError("can't allocate memory"), InfrastructureError),
        (OSError(errno.EIO, "Input/output error"), UserError),
    ],
    ids=str,
)
def test_weights_that_the_machine_does_not_read_are_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, reported: type[Exception]
) -> None:
    torch.save({}, tmp_path / "agent.pt")

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(torch, "load", fail)
    with pytest.raises(reported) as caught:
        read_agent(tmp_path)
    assert not isinstance(caught.value, DamagedError)


def test_rows_are_free_again_if_no_thread_can_be_started(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("can't start new thread")

    state: dict[str, Any] = {
        "step": 1, "training": training_state(1), "bookkeeping": {}, "eval_score": None,
    }  # fmt: skip
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", fail)
        with pytest.raises(InfrastructureError, match=r"can't start new thread.*ulimit -u"):
            store.save(**state)
    assert store.finish() is None
    store.save(**state)
