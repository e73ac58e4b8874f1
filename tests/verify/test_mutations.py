"""Any damage to a file of a run is reported by its name with exit code 4; nothing is executed or changed."""

import hashlib
import pickle
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tiny import CPU

from atari_dqn.errors import DamagedError
from atari_dqn.run.directory import RunDirectory
from atari_dqn.train import launch
from atari_dqn.verify.proof import check_only

Mutation = Callable[["Victim"], bytes | None]
"""What takes the place of a file; None for a file that goes."""


class Victim:
    """A file, the random generator of its damage, and the files that may replace it."""

    def __init__(self, path: Path, others: list[Path], chance: random.Random, trap: Path) -> None:
        self.path, self.others, self.chance, self.trap = path, others, chance, trap
        self.data = path.read_bytes()

    def end(self) -> int:
        """Return the recorded length of a file; a log may grow after the checkpoint that records it."""
        return len(self.data) // 2 if self.path.name == "events.jsonl" else len(self.data)


def truncated(victim: Victim) -> bytes:
    # a document without its last line end would be the same document
    return victim.data[: victim.chance.randrange(max(1, victim.end() - 1))]


def flipped(victim: Victim) -> bytes:
    data = bytearray(victim.data)
    data[victim.chance.randrange(victim.end())] ^= 1 << victim.chance.randrange(8)
    return bytes(data)


def missing(_: Victim) -> None:
    return None


def swapped(victim: Victim) -> bytes:
    """Return the contents of another file, preferably of the same name."""
    others = [path for path in victim.others if path.read_bytes() != victim.data]
    namesakes = [path for path in others if path.name == victim.path.name]
    return victim.chance.choice(namesakes or others).read_bytes()


class Hostile:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def hostile(victim: Victim) -> bytes:
    return pickle.dumps(Hostile(victim.trap))


MUTATIONS: tuple[Mutation, ...] = (truncated, flipped, missing, swapped, hostile)
BY_CHANCE: tuple[Mutation, ...] = (truncated, flipped)
"""Those that differ with the seed."""


@pytest.fixture
def damaged(whole: Path, tmp_path: Path) -> Path:
    """A copy of it that may be damaged."""
    path = tmp_path / "run"
    shutil.copytree(whole, path, symlinks=True)
    check_only(path)
    return path


def files_of(path: Path) -> list[Path]:
    return sorted(file for file in path.rglob("*") if file.is_file() and file.name != ".lock")


def tree(path: Path) -> dict[str, str]:
    """Return every file of a run with its contents, but for the lock, which names the latest process."""
    return {
        str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files_of(path)
    }


@contextmanager
def mutated(victim: Victim, mutation: Mutation) -> Iterator[None]:
    data = mutation(victim)
    victim.path.unlink()
    if data is not None:
        victim.path.write_bytes(data)
    yield
    victim.path.write_bytes(victim.data)


def assert_refused(path: Path, victim: Victim, mutation: Mutation, use: Callable[[Path], object]) -> None:
    with mutated(victim, mutation):
        before = tree(path)
        with pytest.raises(DamagedError) as refusal:
            use(path)
        assert victim.path.name in str(refusal.value), mutation.__name__
        assert refusal.value.exit_code == 4
        assert tree(path) == before
        assert not victim.trap.exists()


def resume(path: Path) -> object:
    return launch.resume(RunDirectory.open(path), device=CPU, views=[], total_frames=1_200)


def victims(path: Path, trap: Path, seed: int) -> list[Victim]:
    files = files_of(path)
    return [Victim(file, [each for each in files if each != file], random.Random(f"{seed} {file.name}"), trap)
            for file in files]  # fmt: skip


def mutations(
    found: list[Victim], each: int, among: tuple[Mutation, ...] = MUTATIONS
) -> list[tuple[Victim, Mutation]]:
    """Pair each file with `each` mutations; one after the other, so that all of them occur.

    No record says which scores and recordings there are, so that a missing one is no damage.
    """
    pairs = [
        (victim, among[(place + turn) % len(among)])
        for place, victim in enumerate(found)
        for turn in range(each)
    ]
    unlisted = ("evaluations", "videos")
    return [pair for pair in pairs if pair[1] is not missing or pair[0].path.parent.name not in unlisted]


@pytest.mark.slow
def test_mutation_of_any_file_is_named_by_verify(damaged: Path, tmp_path: Path) -> None:
    for victim, mutation in mutations(victims(damaged, tmp_path / "trap", seed=0), each=1):
        assert_refused(damaged, victim, mutation, check_only)


@pytest.mark.slow
def test_200_mutations_are_each_named_by_verify(damaged: Path, tmp_path: Path) -> None:
    count = 0
    for seed, among in enumerate((MUTATIONS, BY_CHANCE)):
        for victim, mutation in mutations(victims(damaged, tmp_path / "trap", seed), len(among), among):
            assert_refused(damaged, victim, mutation, check_only)
            count += 1
    assert count >= 200


@pytest.mark.parametrize("each", [1, pytest.param(len(MUTATIONS), marks=pytest.mark.slow)])
def test_mutations_of_what_a_resume_reads_are_each_named_by_it(
    damaged: Path, tmp_path: Path, each: int
) -> None:
    latest = (damaged / "checkpoints/latest").resolve()
    read = [
        victim
        for victim in victims(damaged, tmp_path / "trap", seed=0)
        if victim.path.parent in (damaged, latest) and victim.path.name != "summary.json"
    ]
    for victim, mutation in mutations(read, each):
        assert_refused(damaged, victim, mutation, resume)


def test_catalog_that_lists_another_folder_removes_nothing_there(damaged: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    catalog = damaged / "checkpoints/catalog.json"
    catalog.write_text(catalog.read_text().replace('"step_000000150"', '"../../precious"'))
    launch.resume(RunDirectory.open(damaged), device=CPU, views=[], total_frames=1_600)
    assert (tmp_path / "precious").exists()
