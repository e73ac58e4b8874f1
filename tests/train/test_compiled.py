"""Compiled and eager training agree up to rounding and use the same random numbers."""

import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import torch
from killing import DQN
from tiny import TINY_CATCH

from atari_dqn.agent.random_draws import Rng, normal, uniform
from atari_dqn.cli.app import main
from atari_dqn.errors import UserError
from atari_dqn.fast.compile import DrawnAhead, DrawRecorder, RecordedDraw, compiling
from atari_dqn.machine.hardware import has_compiler

RAINBOW = (
    "toggles.double=true", "toggles.dueling=true", "toggles.prioritized=true", "toggles.n_step=3",
    "toggles.noisy=true", "toggles.distribution=c51",
)  # fmt: skip
OTHERS = (
    ("toggles.distribution=iqn", "toggles.munchausen=true"),
    ("learner.precision=bf16",), ("learner.accumulate=4", "env.num_envs=3"), ("toggles.random_shifts=true",),
    ("toggles.distribution=qr_dqn", "network.kind=impala"), (*RAINBOW, "network.kind=dopamine"),
)  # fmt: skip
WITH_KERNELS = ((*RAINBOW, "network.kind=data_efficient"), ("learner.precision=bf16", "learner.accumulate=4"))
SMALL = ("network.kind=data_efficient", "env.screen_size_pixels=50")
needs_compiler = pytest.mark.skipif(not has_compiler(), reason="no C++ compiler here")


def compare_with_eager(backend: str, updates: int, *combinations: tuple[str, ...]) -> list[dict[str, float]]:
    """Train each combination compiled and eagerly, and return the differences."""
    program = str(Path(__file__).with_name("compare_with_eager.py"))
    command = [sys.executable, program, backend, str(updates), json.dumps(combinations)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.fixture(scope="module")
def traced() -> list[dict[str, float]]:
    """The result of an agent with random draws, traced but run eagerly, because compilation takes long."""
    return compare_with_eager("aot_eager", 8, RAINBOW)


@pytest.mark.slow
def test_what_is_compiled_learns_the_same(traced: list[dict[str, float]]) -> None:
    assert [row["difference_over_movement"] < 1e-3 for row in traced] == [True]


@pytest.mark.slow
def test_what_is_compiled_leaves_the_random_streams_in_the_same_place(
    traced: list[dict[str, float]],
) -> None:
    assert [row["same_streams"] for row in traced] == [True]


@pytest.mark.slow
def test_all_is_compiled_before_the_first_step(traced: list[dict[str, float]]) -> None:
    assert [row["graphs_before"] for row in traced] == [row["graphs"] for row in traced] == [2]


@pytest.mark.thorough
def test_other_combinations_can_be_compiled_and_learn_the_same() -> None:
    rows = compare_with_eager("aot_eager", 8, *OTHERS)
    assert [row["difference_over_movement"] < 0.01 and row["same_streams"] for row in rows] == [True] * 6


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RuntimeError("this view has no kernel\nand a long story"), "this view has no kernel"),
        (RuntimeError("\nthe story alone"), "the story alone"),
        (NotImplementedError(), "NotImplementedError"),
    ],
)
def test_what_cannot_be_compiled_is_refused_with_the_reason(error: Exception, said: str) -> None:
    def fails(*_: object) -> None:
        raise error

    with pytest.raises(UserError, match=rf"compile: {said}; learner\.compile"), compiling():
        torch.compile(lambda x: x + 1, backend=fails)(torch.ones(1))


@needs_compiler
@pytest.mark.thorough
def test_compiled_kernels_learn_the_same_to_rounding() -> None:
    rainbow, bf16 = compare_with_eager("inductor", 40, *WITH_KERNELS)
    assert rainbow["difference_over_movement"] < 0.01
    assert bf16["difference_over_movement"] < 0.1


@pytest.mark.fault("H08")
@needs_compiler
@pytest.mark.thorough
def test_compiled_update_tells_of_a_weight_that_is_nan() -> None:
    program = str(Path(__file__).with_name("nan_compiled.py"))
    made = subprocess.run([sys.executable, program], check=True, capture_output=True, text=True)
    assert json.loads(made.stdout) == {"loss": "nan", "max_q": "nan"}


def dqn(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a `dqn` command in its own process, because the shape checks of tests cannot be compiled."""
    there = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run([*DQN, *words], env=there, capture_output=True, text=True, check=False)


@needs_compiler
@pytest.mark.thorough
@pytest.mark.timeout(1200)  # two compilations of minutes on busy cores
def test_compiled_run_goes_on_to_the_bit_with_kernels_that_are_compiled_anew(tmp_path: Path) -> None:
    sets = [word for key in (*SMALL, "toggles.noisy=true", "learner.compile=true") for word in ("--set", key)]
    run = str(tmp_path / "run")
    caches = [str(tmp_path / name) for name in ("one", "other")]
    made = dqn("train", str(TINY_CATCH), *sets, "--run-dir", run, XDG_CACHE_HOME=caches[0])
    assert made.returncode == 0, made.stderr
    proof = dqn("verify", run, "--json", XDG_CACHE_HOME=caches[1])
    assert json.loads(proof.stdout)["verdict"] == "exact"
    assert list(Path(caches[1]).rglob("*.so"))


Refused = tuple[subprocess.CompletedProcess[str], Path]
NO_COMPILER = ("--set", "learner.compile=true", "--plain", "--device", "cpu")


def refused_by_a_compiler(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `dqn train` with a compiler that fails."""
    words = ("train", str(TINY_CATCH), *NO_COMPILER, "--run-dir", str(folder / "run"))
    return dqn(*words, CXX="false", XDG_CACHE_HOME=str(folder / "cache"))


def refused_at_the_first_call(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `dqn train` in this process with functions that cannot be compiled."""
    from torch._dynamo.exc import TorchDynamoException  # here, because it takes seconds to import

    def fails(*_: object) -> None:
        raise TorchDynamoException

    words = ["dqn", "train", str(TINY_CATCH), *NO_COMPILER, "--run-dir", str(folder / "run")]
    out, err = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(torch, "compile", lambda function, **_: fails)
        patch.setattr(sys, "argv", words)
        patch.setenv("CXX", sys.executable)
        with pytest.raises(SystemExit) as ended:
            main()
    return subprocess.CompletedProcess(words, int(str(ended.value.code)), out.getvalue(), err.getvalue())


@pytest.fixture(
    scope="module",
    params=[refused_at_the_first_call, pytest.param(refused_by_a_compiler, marks=pytest.mark.thorough)],
)
def refused(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Refused:
    """The result of `dqn train` where nothing can be compiled, and the path of its run."""
    folder = tmp_path_factory.mktemp("refused")
    return request.param(folder), folder / "run"


def test_run_that_cannot_be_compiled_is_refused_with_the_way_out(refused: Refused) -> None:
    made, _ = refused
    assert made.returncode == 2
    assert "learner.compile = false does without" in made.stderr.replace("\n", " ")


def test_run_that_cannot_be_compiled_leaves_nothing(refused: Refused) -> None:
    assert not refused[1].exists()


def test_compiling_is_reported_before_it_begins(refused: Refused) -> None:
    assert "0  compiling: acting and learning, up to a minute" in refused[0].stdout


def drawing(rng: Rng, scale: torch.Tensor) -> torch.Tensor:
    return scale * normal(rng, 3) + uniform(rng, 2, 3).sum(dim=0)


def test_recorder_notes_what_is_drawn_in_order() -> None:
    recorder = DrawRecorder(torch.device("cpu"))
    drawing(recorder, torch.ones(3))
    assert recorder.draws == [RecordedDraw("normal", (3,)), RecordedDraw("uniform", (2, 3))]


def test_numbers_drawn_ahead_are_given_out_in_order_until_none_is_left() -> None:
    numbers = [torch.full((3,), 2.0), torch.ones(2, 3)]
    drawn = DrawnAhead(numbers)
    assert drawing(drawn, torch.ones(3)).tolist() == [4.0, 4.0, 4.0]
    assert drawn.left == 0


def test_numbers_of_another_shape_than_were_recorded_are_refused() -> None:
    with pytest.raises(AssertionError, match="draws other numbers"):
        drawing(DrawnAhead([torch.ones(4)]), torch.ones(3))


@pytest.mark.parametrize("name", ["no-such-compiler", ""])
def test_compiler_that_is_not_there_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", name)
    with pytest.raises(UserError, match=f"compiler '{name}' is not here"), compiling():
        pass


def test_kernels_are_kept_among_the_users_own_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CXX", sys.executable)
    with compiling():
        assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / "atari_dqn/kernels")
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")


def test_cache_of_kernels_that_cannot_be_created_is_refused_with_what_to_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "file" / "kernels"))
    monkeypatch.setenv("CXX", sys.executable)
    remedy = r"name another folder in TORCHINDUCTOR_CACHE_DIR, or set learner\.compile = false"
    with pytest.raises(UserError, match=rf"file/kernels: not a directory; {remedy}"), compiling():
        pass
