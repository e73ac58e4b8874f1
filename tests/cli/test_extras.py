"""A missing extra is an error, with a message, of the commands that need it alone."""

import subprocess
import sys
from pathlib import Path

import pytest
from tiny import FEW_STEPS, run

from atari_dqn.train import evaluation_videos

EXTRAS = (
    "PIL",
    "av",
    "huggingface_hub",
    "matplotlib",
    "mlflow",
    "pygame",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "optuna",
    "ray",
    "tensorboard",
    "wandb",
)

WITHOUT_EXTRAS = f"""
import sys
sys.modules.update(dict.fromkeys({EXTRAS!r}))  # None: importing it fails
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS + code], capture_output=True, text=True, check=False
    )


def test_every_module_of_the_command_line_loads_without_extras() -> None:
    done = python(
        "import importlib, pkgutil, atari_dqn.cli\n"
        "for module in pkgutil.iter_modules(atari_dqn.cli.__path__, 'atari_dqn.cli.'):\n"
        "    importlib.import_module(module.name)\n"
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("words", [("sweep", "catch_n_step"), ("train", "apex_small")])
def test_ray_without_its_extra_says_what_to_install(words: tuple[str, ...]) -> None:
    words = ["dqn", *words, "--on", "ray"]
    done = python(f"sys.argv = {words!r}\nfrom atari_dqn.cli import main\nmain()\n")
    message = "error: --on ray needs ray; install it with `pip install 'atari-dqn[ray]'`\n"
    assert (done.returncode, done.stderr) == (2, message)


@pytest.mark.slow
def test_a_tune_on_ray_without_its_extra_says_what_to_install() -> None:
    words = ["dqn", "tune", "catch_learning_rate", "--on", "ray"]
    installed = "for name in ('optuna', 'matplotlib', 'PIL'): del sys.modules[name]\n"
    done = python(f"{installed}sys.argv = {words!r}\nfrom atari_dqn.cli import main\nmain()\n")
    message = "error: --on ray needs ray; install it with `pip install 'atari-dqn[ray]'`\n"
    assert (done.returncode, done.stderr) == (2, message)


@pytest.mark.slow
def test_record_without_its_extra_says_what_to_install() -> None:
    done = python("sys.argv = ['dqn', 'record', 'outputs/run']\nfrom atari_dqn.cli import main\nmain()\n")
    assert done.returncode == 2
    assert "atari-dqn[record]" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_window_without_its_extra_says_what_to_install() -> None:
    words = ["dqn", "play", "--game", "pong", "--window"]
    done = python(f"sys.argv = {words!r}\nfrom atari_dqn.cli import main\nmain()\n")
    message = "error: --window needs pygame; install it with `pip install 'atari-dqn[play]'`\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_tune_without_its_extra_says_what_to_install() -> None:
    done = python("sys.argv = ['dqn', 'tune', 'nothing']\nfrom atari_dqn.cli import main\nmain()\n")
    assert done.returncode == 2
    assert done.stderr == (
        "error: dqn tune needs Optuna and matplotlib; install them with `pip install 'atari-dqn[tune]'`\n"
    )


@pytest.mark.slow
def test_export_to_onnx_without_its_extra_says_what_to_install(tmp_path: Path) -> None:
    run(tmp_path / "run", *FEW_STEPS)
    words = ["dqn", "export", str(tmp_path / "run"), "--onnx", str(tmp_path / "agent.onnx")]
    done = python(f"sys.argv = {words!r}\nfrom atari_dqn.cli import main\nmain()\n")
    message = "error: --onnx needs onnx; install it with `pip install 'atari-dqn[onnx]'`\n"
    assert (done.returncode, done.stderr) == (2, message)


@pytest.mark.slow
def test_page_that_plays_games_back_needs_no_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation_videos, "_NEEDED", ("a_package_of_no_one",))
    run(tmp_path / "run", *FEW_STEPS, "system.evaluation_video=true")
    words = ["dqn", "export", str(tmp_path / "run"), "--web", str(tmp_path / "web")]
    done = python(f"sys.argv = {words!r}\nfrom atari_dqn.cli import main\nmain()\n")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "web" / "index.html").is_file()
