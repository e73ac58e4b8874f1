"""Stray folders and damaged runs among good ones are named and left out, or refused with `--strict`."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from atari_dqn.api.comparing import compare as compare_runs
from atari_dqn.cli.compare import compare
from atari_dqn.compare.comparison import Comparison, compare_readable
from atari_dqn.compare.document import comparison_document
from atari_dqn.compare.output.page import page
from atari_dqn.errors import DamagedError
from atari_dqn.files.atomic import json_document, sha256_of_file
from atari_dqn.run.directory import RunDirectory
from runs import make_run

Dqn = Callable[..., tuple[int, str]]


def provenance(run: Path, **entries: Any) -> None:
    path = run / "provenance.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def spec(run: Path, was: str, now: str) -> None:
    """Change the spec of a run, and its recorded digest."""
    path = run / "spec.toml"
    assert was in path.read_text()
    path.write_text(path.read_text().replace(was, now, 1))
    record = json.loads((run / "provenance.json").read_text())["spec"]
    provenance(run, spec=record | {"toml_sha256": sha256_of_file(path)})


def pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def cell(table: Path, was: str, now: str) -> None:
    assert was in table.read_text()
    table.write_text(table.read_text().replace(was, now, 1))


BROKEN: dict[str, Callable[[Path], object]] = {
    "no spec": lambda run: (run / "spec.toml").unlink(),
    "no provenance": lambda run: (run / "provenance.json").unlink(),
    "spec is a pipe": lambda run: pipe(run / "spec.toml"),
    "provenance is a pipe": lambda run: pipe(run / "provenance.json"),
    "table is a pipe": lambda run: pipe(run / "eval_log.csv"),
    "table is a folder": lambda run: ((run / "eval_log.csv").unlink(), (run / "eval_log.csv").mkdir()),
    "table is empty": lambda run: (run / "eval_log.csv").write_bytes(b""),
    "table is not text": lambda run: (run / "eval_log.csv").write_bytes(b"\xff\x00" * 99),
    "a word as a mean": lambda run: cell(run / "eval_log.csv", "7.0", "seven"),
    "Infinity as a frame": lambda run: cell(run / "eval_log.csv", "500000", "Infinity"),
    "a number of 400 digits as a frame": lambda run: cell(run / "eval_log.csv", "500000", "9" * 400),
    "provenance is nested too deeply": lambda run: (run / "provenance.json").write_text("[" * 50_000),
    "provenance is a list": lambda run: (run / "provenance.json").write_text("[]"),
    "deviations is a number": lambda run: provenance(run, track={"label": "A", "deviations": 5}),
    "deviations is a word": lambda run: provenance(run, track={"label": "A", "deviations": "env"}),
    "track is a list": lambda run: provenance(run, track=[1]),
    "git is a word": lambda run: provenance(run, git="abc"),
    "versions is a number": lambda run: provenance(run, versions=1),
    "protocols is a list": lambda run: provenance(run, protocols=[1]),
    "a protocol's field is a word": lambda run: provenance(run, protocols={"x": {"epsilon": "none"}}),
    "a seed that is a word": lambda run: spec(run, "seed = 7", 'seed = "seven"'),
    "a toggle that is a word": lambda run: spec(run, "double = false", 'double = "no"'),
    "an unknown toggle's value": lambda run: spec(run, 'distribution = "none"', "distribution = 5"),
    "a list as a value": lambda run: spec(run, "batch_size = 32", "batch_size = [32]"),
    "an ε that is a word": lambda run: spec(run, "epsilon_end = 0.1", 'epsilon_end = "low"'),
    "a date as a value": lambda run: spec(run, "batch_size = 32", "batch_size = 2026-01-01"),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three runs that no test changes."""
    root = tmp_path_factory.mktemp("good")
    return [make_run(root / f"good{seed}", [10.0], overrides=[f"seed={seed}"]) for seed in (1, 2, 3)]


@pytest.fixture
def outputs(good: list[Path], tmp_path: Path) -> Path:
    """A folder with the three runs, a stray folder and a stray file."""
    folder = tmp_path / "outputs"
    shutil.copytree(good[0].parent, folder)
    (folder / "notes").mkdir()
    (folder / "sweep.log").touch()
    return folder


def compared(*paths: Path) -> Comparison:
    return compare_readable(paths, human_table="atari57")


@pytest.mark.fault("H04")
@pytest.mark.parametrize("break_it", BROKEN.values(), ids=BROKEN)
def test_a_broken_run_is_named_and_left_out(
    good: list[Path], tmp_path: Path, break_it: Callable[[Path], object]
):
    broken = make_run(tmp_path / "broken", [7.0], overrides=["seed=7"])
    break_it(broken)
    comparison = compared(*good, broken)
    assert [run.seed for result in comparison.results for run in result.group.runs] == [1, 2, 3]
    assert [each.path for each in comparison.left_out] == [broken]
    assert str(broken) in comparison.caveats[0]


@pytest.mark.parametrize(
    "fault", [RecursionError(), MemoryError(), UnicodeError("x"), OSError(5, "x"), KeyError(1)]
)
def test_whatever_a_run_raises_the_others_are_compared(
    good: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception
):
    from atari_dqn.compare import load

    broken, checked = make_run(tmp_path / "broken", [7.0]), load._checked

    def raising(directory: RunDirectory) -> RunDirectory:
        if directory.path == broken:
            raise fault
        return checked(directory)

    monkeypatch.setattr(load, "_checked", raising)
    comparison = compared(*good, broken)
    assert comparison.results[0].last.n == 3
    assert type(fault).__name__ in comparison.caveats[0] or "cannot read" in comparison.caveats[0]


def test_stray_folders_and_files_are_named_and_skipped(dqn: Dqn, outputs: Path, tmp_path: Path):
    out = tmp_path / "out.json"
    assert dqn("compare", *sorted(outputs.iterdir()), "--json", out) == (0, "")
    document = json.loads(out.read_text())
    assert [Path(each["path"]).name for each in document["left_out"]] == ["notes", "sweep.log"]
    assert document["groups"][0]["last"]["n"] == 3


def test_a_folder_of_runs_stands_for_its_runs(dqn: Dqn, outputs: Path, tmp_path: Path):
    out = tmp_path / "out.json"
    assert dqn("compare", outputs, "--json", out) == (0, "")
    assert json.loads(out.read_text())["groups"][0]["last"]["n"] == 3
    assert json.loads(out.read_text())["left_out"] == []


def test_runs_of_a_sweep_below_a_folder_are_compared_too(good: list[Path], tmp_path: Path):
    shutil.copytree(good[0].parent, tmp_path / "outputs" / "a_sweep")
    out = tmp_path / "out.json"
    compare([tmp_path / "outputs"], json=out)
    assert json.loads(out.read_text())["groups"][0]["last"]["n"] == 3


def test_a_tune_is_left_out_and_the_folder_of_its_runs_named(outputs: Path):
    shutil.copytree(outputs / "good1", outputs / "tune" / "runs" / "trial")
    (outputs / "tune" / "tune.json").touch()
    comparison = compare_runs([outputs], strict=False)
    assert comparison.results[0].last.n == 3
    (caveat,) = (str(each) for each in comparison.left_out)
    assert caveat.endswith(f"is the folder of a tune; name that of its runs: {outputs / 'tune' / 'runs'}")


def test_a_path_that_does_not_exist_is_refused_next_to_a_good_one(dqn: Dqn, outputs: Path):
    code, errors = dqn("compare", outputs / "good1", outputs / "missing")
    assert (code, f"{outputs / 'missing'}: not found" in errors) == (2, True)


def test_strict_refuses_a_stray_folder(dqn: Dqn, outputs: Path):
    code, errors = dqn("compare", outputs / "good1", outputs / "notes", "--strict")
    assert (code, errors.count("\n"), "is not a run directory" in errors) == (2, 1, True)


def test_strict_refuses_a_damaged_run(dqn: Dqn, outputs: Path):
    (outputs / "good2" / "eval_log.csv").unlink()
    code, errors = dqn("compare", outputs, "--strict")
    assert (code, errors.count("\n"), "eval_log.csv: is missing" in errors) == (4, 1, True)


def test_nothing_left_is_the_user_s_mistake(dqn: Dqn, tmp_path: Path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    code, errors = dqn("compare", tmp_path / "a", tmp_path / "b")
    assert (code, errors.count("\n")) == (2, 1)
    assert "none of 2 paths is a run that can be compared" in errors


def test_nothing_left_names_every_reason(outputs: Path):
    (outputs / "good2" / "eval_log.csv").unlink()
    with pytest.raises(DamagedError, match=r"eval_log.csv: is missing.*; .*notes is not a run directory"):
        compared(outputs / "good2", outputs / "notes")


def test_escapes_and_broken_letters_of_names_are_shown_escaped(good: list[Path], tmp_path: Path):
    run = make_run(tmp_path / os.fsdecode(b"s\x1b[2J\xff"), [4.0], overrides=["seed=4"])
    provenance(run, name="pong_\x1b]0;title\x07")
    twice = make_run(tmp_path / os.fsdecode(b"t\x1b[2J\xff"), [4.0], overrides=["seed=4"])
    provenance(twice, name="pong_\x1b]0;title\x07")
    comparison = compared(run, twice, *good)
    documents = json_document(comparison_document(comparison)).decode(), page(comparison, folder=tmp_path)
    shown = "".join((*comparison.caveats, *documents))
    assert "\x1b" not in shown
    assert r"t\x1b[2J\udcff is left out" in shown
