"""Two hosts that have the same folder find each other's files; others are refused by name."""

from dataclasses import replace
from pathlib import Path

import pytest

from atari_dqn.errors import UserError
from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.scale import shared_folder
from atari_dqn.scale.shared_folder import answer_probe, check_answer, remove_probe, write_probe


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_folder, "_PATIENCE_SECONDS", 0.0)


@pytest.fixture
def folder(tmp_path: Path) -> SweepFolder:
    folder = SweepFolder(tmp_path / "here")
    folder.create()
    return folder


def test_a_probe_is_answered_in_the_same_folder_and_leaves_nothing(folder: SweepFolder):
    before = sorted(folder.own.iterdir())
    probe = write_probe(folder)
    answer_probe(folder, probe, "node/1 é")
    check_answer(folder, probe, "node/1 é")
    remove_probe(folder, probe)
    assert sorted(folder.own.iterdir()) == before


def test_a_host_with_another_folder_of_that_name_is_refused(folder: SweepFolder, tmp_path: Path):
    elsewhere = SweepFolder(tmp_path / "there")
    elsewhere.create()
    probe = write_probe(folder)
    with pytest.raises(UserError, match=r"node1: .*there is not the folder of the first host"):
        answer_probe(elsewhere, probe, "node1")


def test_a_host_whose_answer_does_not_arrive_is_refused(folder: SweepFolder):
    with pytest.raises(UserError, match=r"node1: what it writes into .* does not arrive here"):
        check_answer(folder, write_probe(folder), "node1")


def test_a_host_with_another_version_is_refused(folder: SweepFolder):
    probe = replace(write_probe(folder), version="0.0.1")
    with pytest.raises(UserError, match=r"node1: has version .* of atari_dqn, expected 0\.0\.1"):
        answer_probe(folder, probe, "node1")
