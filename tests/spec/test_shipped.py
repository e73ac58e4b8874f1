"""Specs that come with the program are found by name, in a checkout and in a wheel."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from atari_dqn.spec import shipped
from atari_dqn.spec.errors import SpecError
from atari_dqn.spec.loader import load_spec

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "runs"


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder, the working directory of the test."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_name_is_found_from_any_folder(elsewhere: Path):
    assert load_spec("pong_quick", ["seed=7"]) == load_spec(RUNS / "pong_quick.toml", ["seed=7"])


def test_a_spec_in_a_folder_of_runs_has_a_name_too(elsewhere: Path):
    assert load_spec("pong_4_dueling") == load_spec(RUNS / "ablations" / "pong_4_dueling.toml")


def test_every_shipped_spec_has_a_name_of_its_own():
    specs = [path for path in RUNS.rglob("*.toml") if path.parent.name not in ("sweeps", "tune")]
    assert len(shipped.shipped_specs()) == len(specs) > 30


def test_a_file_that_exists_comes_before_a_name(elsewhere: Path):
    (elsewhere / "c51").write_text('track = "B"\ngame = "qbert"\nseed = 3\n')
    assert load_spec("c51").spec.game == "qbert"


def test_a_folder_does_not_hide_a_spec_of_its_name(elsewhere: Path):
    (elsewhere / "pong_quick").mkdir()
    assert load_spec("pong_quick").spec.game == "pong"


@pytest.mark.parametrize(("is_sweep", "found"), [(True, "."), (False, "sweeps")])
def test_a_folder_hides_a_sweep_of_its_name_only_if_one_has_begun_there(
    elsewhere: Path, is_sweep: bool, found: str
):
    (elsewhere / "actors_catch").mkdir()
    path = shipped.find_shipped(
        Path("actors_catch"), shipped.shipped_sweeps(), is_folder_of_kind=lambda _: is_sweep
    )
    assert path.parent.name == Path(found).name


def test_a_name_after_a_folder_is_a_path(elsewhere: Path):
    with pytest.raises(SpecError, match=r"^mine/c51: no such file; expected a TOML spec$"):
        load_spec("mine/c51")


@pytest.mark.parametrize("path", ["/c51", "./../c51", "."])
def test_a_path_is_no_name(path: str):
    assert not shipped.is_name(Path(path))


@pytest.mark.parametrize(("written", "meant"), [("pong_quik", "pong_quick"), ("c51.toml", "c51")])
def test_an_unknown_name_is_refused_with_the_nearest(elsewhere: Path, written: str, meant: str):
    with pytest.raises(SpecError) as caught:
        load_spec(written)
    expected = f'no such file; expected a TOML spec or the name of a shipped one; did you mean "{meant}"?'
    assert str(caught.value) == f"{written}: {expected}"


@pytest.mark.parametrize(
    ("overrides", "name"),
    [([], "c51"), (["game=breakout"], "c51_breakout"), (["game=pong"], "c51"), (["seed=2"], "c51")],
)
def test_a_run_on_another_game_is_named_after_it(overrides: list[str], name: str):
    assert load_spec("c51", overrides).name == name


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the content of a wheel that was built from a clone, without the kernels, which take minutes."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{ROOT}", folder / "source"], check=True)
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    no_compiler = {**os.environ, "CC": "false", "CXX": "false"}
    subprocess.run([*build, "-w", folder, folder / "source"], env=no_compiler, check=True, timeout=500)
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "unpacked")
    return folder / "unpacked"


@pytest.mark.slow
def test_a_wheel_holds_every_spec(unpacked: Path):
    copies = unpacked / "atari_dqn" / "shipped_runs"
    assert {path.relative_to(copies) for path in copies.rglob("*") if path.is_file()} == {
        path.relative_to(RUNS) for path in RUNS.rglob("*.toml")
    }


@pytest.mark.slow
def test_an_installed_wheel_finds_a_spec_by_name(unpacked: Path):
    code = "from atari_dqn.spec.shipped import find_spec, Path; print(find_spec(Path('pong_quick')))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=unpacked, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(unpacked / "atari_dqn/shipped_runs/pong_quick.toml")


def test_shipped_specs_cite_sections_of_the_deviations_that_there_are():
    headings = re.findall(r"^## (.+)$", (ROOT / "docs" / "deviations.md").read_text(), re.MULTILINE)
    cited = set()
    for path in shipped.shipped_specs().values():
        text = path.read_text()
        assert not re.search(r"\b[A-Z]\d+ to [A-Z]\d+", text), f"{path}: a range of rows, which will grow"
        for place in re.findall(r'docs/deviations\.md:\n?#? ?((?:"[^"]+"(?: and )?)+)', text):
            cited |= set(re.findall('"([^"]+)"', place))
    assert "Where BTR, HL-Gauss and their sources differ" in cited
    assert cited <= set(headings)
