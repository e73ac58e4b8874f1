"""Check the packages that training needs: whether they load, and what they can do."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from atari_dqn import MOST_SPINS, wait_variables
from atari_dqn.envs.exactness import exactness
from atari_dqn.spec.games import SINGLE_PLAYER_GAMES

Status = Literal["ok", "warn", "fail"]
"""`fail`: training cannot start. `warn`: training can start, but something is slow or small."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """The result of one check."""

    name: str
    status: Status
    text: str
    remedy: str = ""


def torch_check() -> Check:
    """Check whether PyTorch loads."""
    torch = importlib.import_module("torch")
    count = torch.get_num_threads()
    threads = f"{count} thread{'s' * (count != 1)}"
    cuda = torch.version.cuda or "none"
    return Check(name="torch", status="ok", text=f"{torch.__version__}; {threads}; built for CUDA: {cuda}")


def openmp_check() -> Check:
    """Check whether PyTorch has OpenMP, and whether a thread that waits leaves its core to other programs."""
    torch, variables = importlib.import_module("torch"), wait_variables()
    if not torch.backends.openmp.is_available():
        text = "PyTorch was built without it: it learns on one core, and the kernels cannot be loaded"
        remedy = "install PyTorch's own wheel: pip install torch"
        return Check(name="OpenMP", status="warn", text=text, remedy=remedy)
    if _soon_sleep(variables):
        return Check(name="OpenMP", status="ok", text="waiting threads soon sleep")
    settings = ", ".join(f"{name}={value}" for name, value in variables.items()) or "torch was imported first"
    text = f"waiting threads keep their cores busy ({settings}); other programs then slow training down"
    remedy = f"unset {', '.join(variables)}" if variables else "import atari_dqn before torch"
    return Check(name="OpenMP", status="warn", text=text, remedy=remedy)


def _soon_sleep(variables: Mapping[str, str]) -> bool:
    """Return whether a thread that waits soon leaves its core, by the variables of its runtime."""
    if "GOMP_SPINCOUNT" in variables:
        return variables["GOMP_SPINCOUNT"] in map(str, range(MOST_SPINS + 1))
    if "KMP_BLOCKTIME" in variables:
        return variables["KMP_BLOCKTIME"] == "0"
    return variables.get("OMP_WAIT_POLICY", "").lower() == "passive"


def opencv_check() -> Check:
    """Check whether OpenCV loads."""
    cv2 = importlib.import_module("cv2")
    return Check(name="OpenCV", status="ok", text=f"loads, {cv2.__version__}")


def roms_check() -> Check:
    """Check whether the ROMs of the games are installed."""
    roms = importlib.import_module("ale_py.roms")
    known = roms.get_all_rom_ids()
    found = sum(1 for name in known if _has_rom(roms.get_rom_path(name)))
    text = f"{found} of {len(known)} found"
    remedy = "" if found else "install ale-py from its wheel, which brings the ROMs"
    return Check(name="ROMs", status="ok" if found else "fail", text=text, remedy=remedy)


def _has_rom(path: str | Path | None) -> bool:
    return path is not None and Path(path).is_file()


def exactness_check() -> Check:
    """Check whether the installed emulator is the one with which exact resumes were tested."""
    tested = exactness()
    installed = version("ale-py")
    if installed != tested.ale_version:
        text = f"exact resume was tested with ale-py {tested.ale_version}, not with {installed}"
        remedy = f"pip install ale-py=={tested.ale_version}, or test again: python benchmarks/exactness.py"
        return Check(name="exact resume", status="warn", text=text, remedy=remedy)
    number = len(SINGLE_PLAYER_GAMES)
    text = f"{number - len(tested.inexact_games)} of {number} games"
    return Check(name="exact resume", status="ok", text=f"{text}; not {', '.join(tested.inexact_games)}")
