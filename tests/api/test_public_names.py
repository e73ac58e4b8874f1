"""`import atari_dqn as dqn`: quick, typed, and with nothing public but what `__all__` names."""

import subprocess
import sys
from pathlib import Path

import pytest

import atari_dqn as dqn

HEAVY = ("torch", "numpy", "polars", "gymnasium", "ale_py", "cv2", "msgspec")


def in_fresh_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = f"import sys, atari_dqn as dqn; dir(dqn); print(*sorted({set(HEAVY)} & set(sys.modules)))"
    assert in_fresh_process(code) == ""


def test_runs_and_comparisons_need_no_torch() -> None:
    code = (
        "import sys, atari_dqn as dqn; dqn.Run; import atari_dqn.api.comparing; print('torch' in sys.modules)"
    )
    assert in_fresh_process(code) == "False"


@pytest.mark.parametrize(
    ("room", "first"),
    [
        pytest.param("compare", "", marks=pytest.mark.slow),
        ("compare", "import atari_dqn.{room}.{module}; "),
        pytest.param("train", "", marks=pytest.mark.slow),
        pytest.param("train", "import atari_dqn.{room}.{module}; ", marks=pytest.mark.slow),
    ],
)
def test_a_name_that_is_also_a_package_is_both(room: str, first: str) -> None:
    module = {"train": "rate", "compare": "caveats"}[room]
    code = (
        f"{first.format(room=room, module=module)}import atari_dqn as dqn\n"
        f"try: dqn.{room}()\n"
        f"except TypeError as error: print(error)\n"
        f"import atari_dqn.{room}.{module} as module; print(module.__name__)"
    )
    said, module_name = in_fresh_process(code).splitlines()
    assert said.startswith(f"{room}() missing 1 required positional argument")
    assert module_name == f"atari_dqn.{room}.{module}"


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'atari_dqn' has no attribute 'trian'"):
        dqn.trian  # noqa: B018


def test_public_names_are_listed_before_their_first_use() -> None:
    assert set(dqn.__all__) <= set(dir(dqn))


@pytest.mark.slow
def test_a_type_checker_knows_the_public_functions(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import atari_dqn as dqn\n"
        "run = dqn.train('catch_smoke', on_event=print)\n"
        "agent = run.agent('best')\n"
        "reveal_type(agent.evaluate(episodes=3).score.mean_return)\n"
        "reveal_type(dqn.compare([run]).games)\n"
        "dqn.train('catch_smoke', on_evnet=print)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", program], capture_output=True, text=True, check=False
    )
    assert 'Revealed type is "float"' in done.stdout
    assert 'Revealed type is "list[str]"' in done.stdout
    assert 'Unexpected keyword argument "on_evnet"' in done.stdout
    assert done.stdout.count("error:") == 1
