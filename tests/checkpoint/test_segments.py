import errno
import hashlib
import json
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import zstandard
from full_disk import largest_file, small_disk
from states import CPU, extend, ring_at, training_state

from atari_dqn.errors import DamagedError, DiskFullError, UserError
from atari_dqn.replay.ring import FrameRing
from atari_dqn.run.checkpoint import row_saver, stages
from atari_dqn.run.checkpoint.manifest import read_manifest, sealed
from atari_dqn.run.checkpoint.state_tree import tree_digest
from atari_dqn.run.checkpoint.store import CheckpointStore, load_checkpoint

PIECE_ROWS = 8
SMALL_RING = 20


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("atari_dqn.replay.rows.PIECE_FRAMES", PIECE_ROWS)


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    return CheckpointStore(tmp_path / "checkpoints", keep_last=2)


def save(store: CheckpointStore, ring: FrameRing, **values: Any) -> str:
    state = training_state(1, ring)
    return store.save(step=ring.newest, training=state, **{"bookkeeping": {}, "eval_score": None} | values)


def segments(checkpoint: Path) -> list[str]:
    return sorted(path.name for path in (checkpoint / "replay").iterdir())


def inodes(checkpoint: Path) -> dict[str, int]:
    return {path.name: path.stat().st_ino for path in (checkpoint / "replay").iterdir()}


def assert_loads_as(ring: FrameRing, checkpoint: Path) -> None:
    loaded = FrameRing(rows=ring.rows, num_envs=ring.num_envs, frame_shape=(2, 2), stack=1, device=CPU)
    loaded.load_state_dict(load_checkpoint(checkpoint)[0]["replay"]["ring"])
    assert tree_digest(loaded.state_dict()) == tree_digest(ring.state_dict())
    extend(loaded, ring.newest + 3)
    extend(ring, ring.newest + 3)
    assert tree_digest(loaded.state_dict()) == tree_digest(ring.state_dict())


@pytest.mark.parametrize("newest", [0, 1, 7, 8, 9, 19, 20, 21, 27, 28, 45])
@pytest.mark.parametrize("envs", [1, 2])
def test_loaded_ring_is_the_saved_one_before_and_after_it_wraps(
    store: CheckpointStore, newest: int, envs: int
) -> None:
    ring = ring_at(newest, rows=SMALL_RING, envs=envs)
    save(store, ring)
    assert_loads_as(ring, store.latest())


def test_rows_lie_in_pieces_that_begin_at_multiples_of_their_length(store: CheckpointStore) -> None:
    save(store, ring_at(27, rows=SMALL_RING))
    assert segments(store.latest()) == [
        "000000000008-000000000016.zst", "000000000016-000000000024.zst", "000000000024-000000000027.zst",
    ]  # fmt: skip


def test_later_checkpoint_shares_whole_pieces_and_writes_what_is_new(store: CheckpointStore) -> None:
    ring = ring_at(20)
    save(store, ring)
    first = inodes(store.latest())
    extend(ring, 30)
    save(store, ring)
    second = inodes(store.latest())
    assert sorted(second.keys() - first.keys()) == [
        "000000000016-000000000024.zst", "000000000024-000000000030.zst",
    ]  # fmt: skip
    assert {name: second[name] for name in first.keys() & second.keys()} == {
        name: first[name] for name in ("000000000000-000000000008.zst", "000000000008-000000000016.zst")
    }


def test_piece_whose_oldest_rows_are_overwritten_is_shared_still(store: CheckpointStore) -> None:
    ring = ring_at(19, rows=SMALL_RING)
    save(store, ring)
    extend(ring, 24)  # row 5 is the oldest now
    save(store, ring)
    assert segments(store.latest())[0] == "000000000000-000000000008.zst"
    assert_loads_as(ring, store.latest())


def test_segments_of_rows_that_are_gone_go_with_their_checkpoint(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep_last=1)
    ring = ring_at(20, rows=SMALL_RING)
    save(store, ring)
    extend(ring, 50)
    save(store, ring)
    kept = {name for folder in tmp_path.glob("step_*") for name in segments(folder)}
    assert min(kept) == "000000000031-000000000032.zst"


def test_state_digest_does_not_depend_on_how_often_a_run_was_saved(tmp_path: Path) -> None:
    often, once = CheckpointStore(tmp_path / "often"), CheckpointStore(tmp_path / "once")
    ring = ring_at(3, rows=SMALL_RING)
    for newest in (3, 9, 21, 22, 37, 38, 45):
        extend(ring, newest)
        digest = save(often, ring)
    assert digest == save(once, ring) == tree_digest(training_state(1, ring))


@pytest.mark.parametrize("row", [26, 30, 44])
def test_state_digest_changes_with_every_row(tmp_path: Path, row: int) -> None:
    one, other = ring_at(45, rows=SMALL_RING), ring_at(45, rows=SMALL_RING)
    other.reward[row % SMALL_RING] += 1
    assert tree_digest(one.state_dict()) != tree_digest(other.state_dict())


def test_state_digest_does_not_hang_on_rows_that_are_overwritten() -> None:
    one, other = ring_at(10, rows=SMALL_RING), ring_at(10, rows=SMALL_RING)
    other.frame[3] += 1
    for ring in (one, other):
        extend(ring, 24)
    assert tree_digest(one.state_dict()) == tree_digest(other.state_dict())


def test_resumed_run_goes_on_with_the_segments_of_its_checkpoint(store: CheckpointStore) -> None:
    ring = ring_at(20)
    save(store, ring)
    before = inodes(store.latest())
    resumed = CheckpointStore(store.folder, keep_last=2)
    resumed.continue_from(store.latest())
    extend(ring, 26)
    save(resumed, ring)
    shared = "000000000008-000000000016.zst"
    assert inodes(store.latest())[shared] == before[shared]


def test_store_that_has_no_earlier_segments_shares_none(store: CheckpointStore) -> None:
    save(store, ring_at(20))
    before = inodes(store.latest())
    save(CheckpointStore(store.folder, keep_last=2), ring_at(26))  # perhaps another past: rows may differ
    assert not set(before.values()) & set(inodes(store.latest()).values())


def test_segment_that_was_damaged_is_written_anew(store: CheckpointStore) -> None:
    ring = ring_at(20)
    save(store, ring)
    damaged = store.latest() / "replay" / "000000000000-000000000008.zst"
    damaged.write_bytes(b"x" + damaged.read_bytes()[1:])
    extend(ring, 22)
    save(store, ring)
    assert_loads_as(ring, store.latest())


def test_checkpoint_before_that_was_removed_by_hand_is_not_missed(store: CheckpointStore) -> None:
    ring = ring_at(20)
    save(store, ring)
    shutil.rmtree(store.latest() / "replay")
    extend(ring, 22)
    save(store, ring)
    assert_loads_as(ring, store.latest())


def test_file_system_without_hard_links_gets_copies(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    ring = ring_at(20)
    save(store, ring)
    monkeypatch.setattr(os, "link", refuse)
    extend(ring, 22)
    save(store, ring)
    assert_loads_as(ring, store.latest())


def test_checkpoint_that_was_moved_away_alone_is_whole(store: CheckpointStore, tmp_path: Path) -> None:
    ring = ring_at(20)
    save(store, ring)
    extend(ring, 30)
    save(store, ring)
    away = tmp_path / "away"
    store.latest().rename(away)
    shutil.rmtree(store.folder)
    assert_loads_as(ring, away)


class HeldWriter:
    """Replaces the writer of segments, and blocks its thread until it is released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.let_go = threading.Semaphore(0), threading.Semaphore(0)
        self._write = row_saver.write_segment
        monkeypatch.setattr(row_saver, "write_segment", self)

    def __call__(self, *args: Any, **values: Any) -> Any:
        self.reached.release()
        assert self.let_go.acquire(timeout=30)
        return self._write(*args, **values)


def begin(store: CheckpointStore, ring: FrameRing) -> None:
    state = training_state(1, ring)
    store.begin(step=ring.newest, training=state, bookkeeping={}, eval_score=None)


def test_state_that_is_saved_is_that_of_the_snapshot_though_training_goes_on(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring, then = ring_at(10), ring_at(10)
    writer = HeldWriter(monkeypatch)
    state = training_state(1, ring)
    store.begin(step=10, training=state, bookkeeping={}, eval_score=None)
    assert writer.reached.acquire(timeout=30)
    extend(ring, 30)
    state["returns"][:] = 7
    state["learner"]["online"]["weight"].zero_()
    writer.let_go.release(10)
    saved = store.finish()
    assert saved is not None
    assert saved.state_digest == tree_digest(training_state(1, then))
    assert_loads_as(then, store.latest())


def test_ring_waits_before_it_overwrites_a_row_that_is_not_written_yet(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = ring_at(30, rows=SMALL_RING)  # rows 11 to 29 are complete; the next to go is 11
    writer = HeldWriter(monkeypatch)
    begin(store, ring)
    assert writer.reached.acquire(timeout=30)
    playing = threading.Thread(target=extend, args=(ring, 31))
    playing.start()
    playing.join(0.2)
    assert playing.is_alive()
    assert ring.newest == 30
    writer.let_go.release()  # rows 11 to 15
    playing.join(30)
    assert ring.newest == 31
    writer.let_go.release(10)
    store.finish()
    assert_loads_as(ring_at(30, rows=SMALL_RING), store.latest())


def test_ring_does_not_wait_for_rows_that_were_saved_before(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = ring_at(40, rows=SMALL_RING)
    save(store, ring)
    extend(ring, 44)
    writer = HeldWriter(monkeypatch)
    begin(store, ring)
    assert writer.reached.acquire(timeout=30)  # at row 40: rows 25 to 39 are shared
    extend(ring, 50)
    writer.let_go.release(10)
    store.finish()
    assert_loads_as(ring_at(44, rows=SMALL_RING), store.latest())


def test_next_checkpoint_waits_for_the_one_before(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring = ring_at(10)
    writer = HeldWriter(monkeypatch)
    begin(store, ring)
    assert store.poll() is None
    extend(ring, 12)
    threading.Timer(0.1, writer.let_go.release, [20]).start()
    save(store, ring)
    assert [entry.step for entry in store.catalog()] == [10, 12]


@pytest.mark.parametrize("stage", ["write_rows", "write_rest", "write_manifest", "flush", "put_in_place"])
def test_error_of_the_writer_surfaces_and_the_ring_is_free(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    ring = ring_at(30, rows=SMALL_RING)
    save(store, ring)
    extend(ring, 32)
    with monkeypatch.context() as patch:
        patch.setattr(stages, stage, refuse)
        begin(store, ring)
        with pytest.raises(DiskFullError):
            store.finish()
    extend(ring, 60)
    save(store, ring)
    assert_loads_as(ring, store.latest())


def test_checkpoint_that_is_given_up_leaves_nothing(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = HeldWriter(monkeypatch)
    begin(store, ring_at(20))
    assert writer.reached.acquire(timeout=30)
    threading.Timer(0.1, writer.let_go.release, [20]).start()
    store.cancel()
    assert list(store.folder.iterdir()) == []


def noisy_ring() -> FrameRing:
    """A ring of 500 pieces, 4 MB, that cannot be compressed."""
    ring = FrameRing(rows=4_000, num_envs=1, frame_shape=(32, 32), stack=1, device=CPU)
    ring.newest = 3_999
    noise = np.random.default_rng(1).integers(256, size=tuple(ring.frame.shape), dtype=np.uint8)
    ring.frame.copy_(torch.from_numpy(noise))
    return ring


def assert_only_the_first_is_there_and_whole(store: CheckpointStore) -> None:
    names = sorted(path.name for path in store.folder.iterdir())
    assert names == ["catalog.json", "latest", "step_000000020"]
    load_checkpoint(store.latest())


def test_full_disk_is_reported_with_the_bytes_needed_and_leaves_the_checkpoint_before_whole(
    tmp_path: Path,
) -> None:
    message = r"no space left on device \(the checkpoint takes about 4\.1 MB, \d\.\d MB are free\)"
    with small_disk(tmp_path, 2_000_000):
        store = CheckpointStore(tmp_path / "checkpoints")
        save(store, ring_at(20))
        with pytest.raises(DiskFullError, match=message):
            save(store, noisy_ring())
        assert_only_the_first_is_there_and_whole(store)


def test_limit_on_the_size_of_files_leaves_the_checkpoint_before_whole(store: CheckpointStore) -> None:
    save(store, ring_at(20))
    with largest_file(8_000), pytest.raises(DiskFullError, match=r"file too large \(the .* takes about"):
        save(store, noisy_ring())
    assert_only_the_first_is_there_and_whole(store)


@pytest.mark.parametrize(
    "data", [b"", b"no frame", zstandard.compress(b"x"), zstandard.compress(bytes(9_999))]
)
def test_segment_that_holds_something_else_is_damage_though_its_sum_is_right(
    store: CheckpointStore, data: bytes
) -> None:
    save(store, ring_at(5))
    name = "replay/000000000000-000000000005.zst"
    (store.latest() / name).write_bytes(data)
    manifest = read_manifest(store.latest())
    manifest["files"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    (store.latest() / "manifest.json").write_text(json.dumps(sealed(manifest)))
    with pytest.raises(DamagedError, match=rf"{name}: cannot be read"):
        assert_loads_as(ring_at(5), store.latest())


def test_segment_that_the_system_refuses_to_read_is_not_called_damaged(
    store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> Any:
        raise OSError(errno.EMFILE, "Too many open files", str(path))

    save(store, ring_at(5))
    monkeypatch.setattr("atari_dqn.run.checkpoint.segments.open_regular", refuse)
    with pytest.raises(UserError, match=r"000000000005.zst: too many open files"):
        assert_loads_as(ring_at(5), store.latest())


def test_checkpoint_without_the_replay_has_the_same_digest_and_no_rows(tmp_path: Path) -> None:
    ring = ring_at(30, rows=SMALL_RING)
    store = CheckpointStore(tmp_path, save_replay=False)
    assert save(store, ring) == tree_digest(training_state(1, ring))
    assert not (store.latest() / "replay").exists()
    assert read_manifest(store.latest())["replay_saved"] is False
    loaded = load_checkpoint(store.latest())[0]["replay"]
    assert loaded.keys() == {"newest_frame", "generator"}
    assert loaded["newest_frame"].tolist() == [[[30, 30], [30, 30]]]
    assert loaded["generator"].tolist() == [5, 6, 7, 8, 9, 10, 11, 12]


def test_as_many_of_the_best_are_kept_as_the_key_says(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path, keep_last=1, keep_best=2)
    ring = ring_at(1)
    for newest, score in ((1, 5.0), (2, 9.0), (3, 7.0), (4, 1.0)):
        extend(ring, newest)
        save(store, ring, eval_score=score)
    assert [entry.step for entry in store.catalog()] == [2, 3, 4]
    assert (tmp_path / "best").readlink() == Path("step_000000002")
