import random
import re
import shutil
import tempfile
import zipfile
from pathlib import Path

import pytest
import torch
from exported import add_video, export
from tiny import CPU, FEW_STEPS, MEMORY, run

import atari_dqn as dqn
from atari_dqn.compare.comparison import compare
from atari_dqn.compare.document import comparison_document
from atari_dqn.errors import DamagedError, UserError
from atari_dqn.evaluation.checkpoint_score import evaluate_checkpoint, save_score
from atari_dqn.evaluation.export import archive_of, newest_video
from atari_dqn.evaluation.frozen_agent import load_frozen
from atari_dqn.evaluation.weights import weights_data
from atari_dqn.run.archive.archive import (
    WEIGHTS,
    Archive,
    check_is_archive,
    read_archive,
    unpack_archive,
    write_archive,
)
from atari_dqn.run.archive.container import container
from atari_dqn.run.archive.opening import opened_run
from atari_dqn.run.directory import RunDirectory, refuse_existing
from atari_dqn.run.recorded_scores import recorded_scores
from atari_dqn.run.tailing.status import RunStatus
from atari_dqn.train.resumption import resume_point
from atari_dqn.verify.proof import check_only

EXPLORING = "evaluation.epsilon=0.3"


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "my run"
    run(path, EXPLORING)
    add_video(load_frozen(path, CPU), "step_000000300", b"frames" * 100)
    return path


@pytest.fixture(scope="module")
def archive(run_dir: Path) -> Path:
    path = run_dir.with_name("agent.dqn")
    export(load_frozen(run_dir, CPU), path)
    return path


@pytest.fixture(scope="module")
def imported(archive: Path) -> Path:
    folder = archive.with_name("imported")
    unpack_archive(read_archive(archive), folder)
    return folder


@pytest.mark.parametrize("content", [None, "step,env_fra"])
def test_run_without_the_header_of_a_table_is_not_exported(
    run_dir: Path, tmp_path: Path, content: str | None
) -> None:
    copy = shutil.copytree(run_dir, tmp_path / "copy", symlinks=True)
    table = copy / "eval_log.csv"
    table.unlink()
    if content is not None:
        table.write_text(content)
    with pytest.raises(
        DamagedError, match=r"eval_log\.csv: missing or without a header, and an archive needs"
    ):
        export(load_frozen(copy, CPU), tmp_path / "agent.dqn")


def games_of(path: Path):
    result = evaluate_checkpoint(load_frozen(path, CPU), episodes=9)
    return result.score, result.protocol


def test_games_of_an_archive_are_those_of_the_checkpoint(run_dir: Path, archive: Path, imported: Path):
    score, protocol = games_of(run_dir)
    assert len(set(zip(score.returns, score.lengths_frames, strict=True))) > 2, "the games differ"
    assert games_of(archive) == (score, protocol)
    assert games_of(imported) == (score, protocol)


def test_games_of_an_archived_agent_with_memory_are_those_of_the_checkpoint(tmp_path: Path):
    run(tmp_path / "memory", EXPLORING, *MEMORY, *FEW_STEPS, "toggles.prioritized=false")
    export(load_frozen(tmp_path / "memory", CPU), tmp_path / "memory.dqn")
    assert games_of(tmp_path / "memory.dqn") == games_of(tmp_path / "memory")


def test_a_named_checkpoint_is_archived(run_dir: Path, tmp_path: Path):
    agent = load_frozen(run_dir / "checkpoints" / "step_000000150", CPU)
    export(agent, tmp_path / "early.dqn")
    loaded = load_frozen(tmp_path / "early.dqn", CPU)
    assert (loaded.step, loaded.choice) == (150, agent.choice)
    for name, weight in agent.network.state_dict().items():
        assert torch.equal(loaded.network.state_dict()[name], weight), name


def test_any_zip_program_reads_an_archive(archive: Path):
    with zipfile.ZipFile(archive) as file:
        assert file.testzip() is None
        assert {name: file.read(name) for name in file.namelist()[1:]} == dict(read_archive(archive).parts)
        assert {member.compress_type for member in file.infolist()} == {zipfile.ZIP_STORED}


def test_an_archive_has_every_score_with_its_protocol_and_games(run_dir: Path, archive: Path):
    own = recorded_scores(RunDirectory.open(run_dir))
    with opened_run(archive) as opened:
        assert recorded_scores(opened) == own
    assert [(score.kind, score.step) for score in own] == [
        ("light", 75), ("full", 150), ("light", 225), ("final", 300),
    ]  # fmt: skip
    for score in own:
        assert score.protocol is not None
        assert score.returns is not None
        assert score.mean_return == pytest.approx(sum(score.returns) / len(score.returns))
        assert len(score.returns) == score.protocol.episodes


def test_a_comparison_of_an_archive_is_that_of_its_run(run_dir: Path, archive: Path, imported: Path):
    def document(path: Path) -> str:
        return str(comparison_document(compare([path], human_table="atari57"))).replace(str(path), "PATH")

    assert document(archive) == document(run_dir)
    assert document(imported) == document(run_dir)


def test_a_folder_of_archives_is_compared(archive: Path, tmp_path: Path):
    shutil.copy(archive, tmp_path / "mine.dqn")
    (result,) = dqn.compare(tmp_path).results
    assert [run.path for run in result.group.runs] == [tmp_path / "mine.dqn"]


def test_an_archive_has_the_video_of_its_step(archive: Path, imported: Path):
    assert read_archive(archive).parts["videos/step_000000300.mp4"] == b"frames" * 100
    assert (imported / "videos" / "step_000000300.mp4").read_bytes() == b"frames" * 100


def test_scores_of_an_archive_are_kept_next_to_it(archive: Path, imported: Path):
    assert load_frozen(archive, CPU).run.path == archive.with_name("agent_results")
    assert load_frozen(imported, CPU).run.path == imported


@pytest.mark.parametrize("form", ["file", "imported"])
def test_scores_of_an_archive_have_what_was_evaluated_of_it(archive: Path, tmp_path: Path, form: str):
    path = tmp_path / "copy.dqn"
    shutil.copy(archive, path)
    if form == "imported":
        path = tmp_path / "copy"
        unpack_archive(read_archive(archive), path)
    agent = load_frozen(path, CPU)
    before = dqn.Run(path).scores
    agent.run.evaluations.mkdir(parents=True)
    result = evaluate_checkpoint(agent, episodes=2)
    save_score(agent, result)
    assert [each.returns for each in dqn.Run(path).scores] == [
        *(each.returns for each in before), result.score.returns
    ]  # fmt: skip


def test_an_archive_that_is_made_again_has_the_later_video_alone(archive: Path, tmp_path: Path):
    path = tmp_path / "copy.dqn"
    shutil.copy(archive, path)
    video = add_video(load_frozen(path, CPU), "step_000000300_run", b"later")
    assert video.parent == tmp_path / "copy_results" / "videos"
    parts = archive_of(load_frozen(path, CPU), newest_video(load_frozen(path, CPU))).parts
    assert {name: data for name, data in parts.items() if name.startswith("videos/")} == {
        "videos/step_000000300.mp4": b"later"
    }


def test_an_archive_of_which_nothing_was_made_is_the_same_when_made_again(archive: Path, tmp_path: Path):
    path = tmp_path / "copy.dqn"
    shutil.copy(archive, path)
    export(load_frozen(path, CPU), tmp_path / "again.dqn")
    assert (tmp_path / "again.dqn").read_bytes() == archive.read_bytes()


def mutated(data: bytes, headers: list[int], rng: random.Random) -> bytes:
    """Change, remove, insert or move some bytes, every other time in a header or near it."""
    start = rng.choice([rng.randrange(len(data)), rng.choice(headers) + rng.randrange(30)])
    end = min(len(data), start + rng.choice((1, 1, 1, 4, 100, 5_000)))
    piece = data[start:end]
    other = rng.choice(
        [
            bytes(byte ^ (1 << rng.randrange(8)) for byte in piece),
            b"",
            piece + piece,
            bytes(len(piece)),
            piece[::-1],
            piece + data[end:] + piece,
        ]
    )
    return data[:start] + other + data[end:]


MARKS = (
    r"archive\.json|spec\.toml|provenance\.json|scores\.json|\w+\.csv|weights\.safetensors|videos/\w+\.mp4"
)


def test_every_mutation_is_refused_with_the_name_of_its_part(archive: Path, tmp_path: Path):
    data, path, rng = archive.read_bytes(), tmp_path / "changed.dqn", random.Random(5)
    headers = [found.start() for found in re.finditer(rb"PK\x01\x02|PK\x03\x04", data)]
    mutations = {mutated(data, headers, rng) for _ in range(450)} - {data}
    assert len(mutations) >= 300
    for mutation in mutations:
        path.write_bytes(mutation)
        with pytest.raises(DamagedError) as refused:
            load_frozen(path, CPU)
        assert re.search(rf"changed\.dqn: ({MARKS}|the list of parts at its end)", str(refused.value))


@pytest.mark.slow
def test_parts_that_another_program_wrote_are_read_or_refused_by_name(archive: Path, tmp_path: Path):
    whole, path, rng = read_archive(archive), tmp_path / "other.dqn", random.Random(6)
    names = sorted(name for name in whole.parts if not name.endswith(".mp4"))
    refused: list[tuple[str, str]] = []
    for _ in range(200):
        name = rng.choice(names)
        part = mutated(whole.parts[name], [0], rng)
        path.unlink(missing_ok=True)
        write_archive(path, whole.agent, {**whole.parts, name: part})  # with the SHA-256 of this part
        try:
            load_frozen(path, CPU)
            run = dqn.Run(path)
            read = {"scores": run.scores, **run.tables}
        except (DamagedError, UserError) as error:
            refused.append((name, str(error)))
        else:
            assert len(read) == 4
    assert len(refused) > 50
    assert [text for name, text in refused if name not in text] == []


@pytest.mark.parametrize("name", ["spec.toml", "eval_log.csv", "weights.safetensors"])
def test_a_damaged_part_of_an_imported_archive_is_refused(imported: Path, tmp_path: Path, name: str):
    folder = tmp_path / "copy"
    unpack_archive(read_archive(imported), folder)
    part = folder / name
    part.write_bytes(part.read_bytes()[:-1] + b"?")
    with pytest.raises(DamagedError, match=rf"{re.escape(name)}: its SHA-256 is.*; unpack the archive again"):
        load_frozen(folder, CPU)


def changed(archive: Path, **parts: bytes) -> Archive:
    whole = read_archive(archive)
    names = {"weights": WEIGHTS}
    return Archive(
        path=whole.path,
        agent=whole.agent,
        parts={**whole.parts, **{names.get(name, name): data for name, data in parts.items()}},
    )


def test_weights_of_another_network_are_refused(archive: Path, tmp_path: Path):
    other = changed(archive, weights=weights_data({"torso.weight": torch.zeros(2)}))
    write_archive(tmp_path / "other.dqn", other.agent, other.parts)
    with pytest.raises(DamagedError, match=r"weights\.safetensors: \S+ is not in both"):
        load_frozen(tmp_path / "other.dqn", CPU)


def test_weights_of_another_shape_are_refused(archive: Path, tmp_path: Path):
    weights = load_frozen(archive, CPU).network.state_dict()
    name = next(iter(weights))
    other = changed(archive, weights=weights_data({**weights, name: weights[name][:1]}))
    write_archive(tmp_path / "other.dqn", other.agent, other.parts)
    with pytest.raises(DamagedError, match=rf"weights\.safetensors: {re.escape(name)}: found torch.float32"):
        load_frozen(tmp_path / "other.dqn", CPU)


def test_a_pickle_in_place_of_weights_is_not_executed(archive: Path, tmp_path: Path):
    mark = tmp_path / "executed"
    other = changed(archive, weights=f"cos\nsystem\n(S'touch {mark}'\ntR.".encode())
    write_archive(tmp_path / "other.dqn", other.agent, other.parts)
    with pytest.raises(DamagedError, match=r"weights\.safetensors: cannot be read"):
        load_frozen(tmp_path / "other.dqn", CPU)
    assert not mark.exists()


@pytest.mark.parametrize("name", ["../../outside.json", "/outside.json", "videos/../a.mp4", "a/b.csv"])
def test_a_part_with_a_path_is_refused(archive: Path, tmp_path: Path, name: str):
    whole = read_archive(archive)
    write_archive(tmp_path / "other.dqn", whole.agent, {**whole.parts, name: b"{}"})
    with pytest.raises(DamagedError, match=r"archive\.json: .*regex"):
        read_archive(tmp_path / "other.dqn")


def test_an_archive_without_weights_is_refused(archive: Path, tmp_path: Path):
    whole = read_archive(archive)
    parts = {name: data for name, data in whole.parts.items() if name != WEIGHTS}
    write_archive(tmp_path / "other.dqn", whole.agent, parts)
    with pytest.raises(DamagedError, match=r"weights\.safetensors: missing"):
        read_archive(tmp_path / "other.dqn")


def test_a_cut_archive_is_to_be_copied_again(archive: Path, tmp_path: Path):
    (tmp_path / "cut.dqn").write_bytes(archive.read_bytes()[:-9])
    with pytest.raises(DamagedError, match=r"; copy or download it again, or export it with this version"):
        read_archive(tmp_path / "cut.dqn")


def test_document_that_would_not_fit_in_memory_is_refused_before_it_is_parsed(tmp_path: Path):
    document = b'{"a":[' + b"{}," * 6_000_000 + b"{}]}"
    (tmp_path / "large.dqn").write_bytes(container({"archive.json": document}))
    with pytest.raises(DamagedError, match=r"archive\.json: is larger than 16,777,216 bytes"):
        read_archive(tmp_path / "large.dqn")


def test_import_in_the_place_of_a_new_run_is_not_said_to_be_resumable(imported: Path):
    with pytest.raises(UserError, match="exists and is never overwritten; name another directory"):
        refuse_existing(imported)


def test_training_does_not_continue_from_an_imported_archive(imported: Path):
    with pytest.raises(UserError, match="is an imported archive"):
        resume_point(RunDirectory.open(imported))
    with pytest.raises(UserError, match="is an imported archive"):
        check_only(imported)


def test_an_imported_archive_is_imported_not_stopped(imported: Path):
    status = RunStatus(imported)
    status.refresh()
    assert status.state == "imported"


def test_a_file_of_another_kind_is_refused_in_words(tmp_path: Path):
    with pytest.raises(UserError, match="not found"):
        check_is_archive(tmp_path / "absent.dqn")
    (tmp_path / "notes.txt").write_text("notes")
    with pytest.raises(UserError, match="is not an archive"):
        check_is_archive(tmp_path / "notes.txt")
    (tmp_path / "notes.dqn").write_text("notes")
    with pytest.raises(DamagedError, match=r"archive\.json: the file is shorter"):
        load_frozen(tmp_path / "notes.dqn", CPU)


def test_an_error_in_a_file_of_an_archive_names_the_archive(archive: Path, tmp_path: Path):
    whole = read_archive(archive)
    write_archive(tmp_path / "other.dqn", whole.agent, {**whole.parts, "spec.toml": b"track ="})
    with pytest.raises((UserError, DamagedError)) as caught:
        load_frozen(tmp_path / "other.dqn", CPU)
    assert str(caught.value).startswith(f"{tmp_path / 'other.dqn' / 'spec.toml'}: ")


@pytest.mark.parametrize("name", ["best-of-5", "größe (1)", "x" * 90])
def test_a_video_of_any_name_is_in_an_archive_that_can_be_read(archive: Path, tmp_path: Path, name: str):
    shutil.copy(archive, tmp_path / "copy.dqn")
    agent = load_frozen(tmp_path / "copy.dqn", CPU)
    add_video(agent, f"step_000000300_{name}", b"frames of it")
    export(agent, tmp_path / "again.dqn")
    assert read_archive(tmp_path / "again.dqn").parts["videos/step_000000300.mp4"] == b"frames of it"


def test_an_archive_is_not_opened_without_a_place_for_its_files(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    with pytest.raises(UserError, match=r"cannot make a temporary folder: .*set TMPDIR"), opened_run(archive):
        pass
