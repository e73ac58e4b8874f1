"""Every score of a run has its protocol, also after a resume with another version of the emulator."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from exported import export
from tiny import CPU, FEW_STEPS, run_once

from atari_dqn.compare.load import load_runs
from atari_dqn.errors import DamagedError
from atari_dqn.evaluation.frozen_agent import load_frozen
from atari_dqn.run.archive.archive import SCORES
from atari_dqn.run.checkpoint.manifest import read_manifest, replace_bookkeeping
from atari_dqn.run.checkpoint.reconcile import checkpoint_directories
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.recorded_protocols import _of_scores
from atari_dqn.run.recorded_scores import scores_of
from atari_dqn.run.scores import score_protocol
from atari_dqn.spec.protocol import Protocol
from atari_dqn.train import launch, training_evaluations

OTHER = "0.99"
"""A version of the emulator that is not the one with which the run began."""


def with_other_emulator(*arguments: object, **named: object) -> Protocol:
    return replace(score_protocol(*arguments, **named), ale_version=OTHER)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was resumed with another version of the emulator."""
    folder = tmp_path_factory.mktemp("upgraded")
    path = folder / "run"
    shutil.copytree(run_once(folder, *FEW_STEPS), path, symlinks=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_evaluations, "score_protocol", with_other_emulator)
        launch.resume(RunDirectory.open(path), device=CPU, views=[], total_frames=160)
    return path


def test_scores_before_and_after_have_the_protocol_of_their_version(upgraded: Path):
    found = [score.protocol.ale_version if score.protocol else None for score in scores_of(upgraded)]
    assert found == ["", OTHER]


def test_a_comparison_has_the_protocols_of_both_versions(upgraded: Path):
    (run,) = load_runs([upgraded])
    assert [run.protocols[score.protocol_digest].ale_version for score in run.evaluations] == ["", OTHER]


def test_a_comparison_of_its_archive_has_the_protocols_of_both_versions(upgraded: Path, tmp_path: Path):
    export(load_frozen(upgraded, CPU), tmp_path / "run.dqn")
    (run,) = load_runs([tmp_path / "run.dqn"])
    assert [run.protocols[score.protocol_digest].ale_version for score in run.evaluations] == ["", OTHER]


def test_the_summary_has_the_protocol_of_the_version_under_which_the_best_score_was_made(upgraded: Path):
    summary = json.loads((upgraded / "summary.json").read_text())
    made = {score.step: score.protocol for score in scores_of(upgraded)}
    for name, checkpoint in (("best", "best"), ("last", "last")):
        protocol = made[summary[name]["step"]]
        assert protocol is not None
        expected = replace(protocol, checkpoint=checkpoint).digest()  # type: ignore[arg-type]
        assert summary[name]["protocol_digest"] == expected


def test_scores_of_a_checkpoint_of_an_earlier_version_have_the_emulator_of_the_runs_start(tmp_path: Path):
    path = tmp_path / "run"
    shutil.copytree(run_once(tmp_path, *FEW_STEPS), path, symlinks=True)
    for checkpoint in checkpoint_directories(path / "checkpoints"):
        bookkeeping = read_manifest(checkpoint)["bookkeeping"]
        del bookkeeping["ale_versions"]
        replace_bookkeeping(checkpoint, bookkeeping)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_evaluations, "score_protocol", with_other_emulator)
        launch.resume(RunDirectory.open(path), device=CPU, views=[], total_frames=160)
    saved = read_manifest(path / "checkpoints/latest")["bookkeeping"]
    assert saved["ale_versions"] == [[20, ""], [40, OTHER]]


@pytest.mark.parametrize("document", [5, [{"protocol_digest": [], "protocol": {}}], [{"protocol": 1}]])
def test_scores_of_an_import_that_are_none_are_damaged(tmp_path: Path, document: object):
    (tmp_path / SCORES).write_text(json.dumps(document))
    with pytest.raises(DamagedError, match=SCORES):
        _of_scores(tmp_path / SCORES)


def resumed_notice(path: Path) -> dict[str, object]:
    events = [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
    (notice,) = [event for event in events if event["kind"] == "resumed"]
    return dict(notice["data"])


def test_a_resume_with_the_same_versions_records_no_protocol_again(tmp_path: Path):
    path = tmp_path / "run"
    shutil.copytree(run_once(tmp_path, *FEW_STEPS), path, symlinks=True)
    launch.resume(RunDirectory.open(path), device=CPU, views=[], total_frames=160)
    assert "protocols" not in resumed_notice(path)


def test_a_damaged_protocol_of_a_resume_is_named(upgraded: Path, tmp_path: Path):
    path = tmp_path / "damaged"
    shutil.copytree(upgraded, path, symlinks=True)
    events = path / "events.jsonl"
    events.write_text(events.read_text().replace(f'"ale_version": "{OTHER}"', '"ale_version": 1'))
    with pytest.raises(DamagedError, match=r"events\.jsonl: protocols\.\[\.\.\.\]\.ale_version"):
        scores_of(path)
