"""ATARI_DQN_ISA chooses the kernels of a command, and a run records which it used."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import CommandServer
from tiny import TINY_CATCH

from atari_dqn.fast.cpu.library import instruction_set, kernels_here

SHORT = ("--set", "training.total_frames=600", "--plain", "--run-dir")


@pytest.mark.parametrize("asked", ["sse", "neon,avx2"])
@pytest.mark.parametrize(
    "words", [("train", TINY_CATCH, *SHORT, "run"), ("bench", TINY_CATCH)], ids=["train", "bench"]
)
def test_instruction_set_that_is_not_here_ends_a_command_in_one_sentence(
    words: tuple[object, ...], asked: str, command_server: CommandServer, tmp_path: Path
) -> None:
    ended = command_server.run(*words, cwd=tmp_path, env={"ATARI_DQN_ISA": asked})
    (sentence,) = ended.err.splitlines()
    assert sentence.startswith(f"error: ATARI_DQN_ISA={asked} is not available on this machine; available: ")
    assert (ended.code, list(tmp_path.iterdir())) == (2, [])


def test_run_without_kernels_says_why_and_records_none(command_server: CommandServer, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert command_server.run("train", TINY_CATCH, *SHORT, run, env={"ATARI_DQN_ISA": "none"}).code == 0
    provenance = json.loads((run / "provenance.json").read_text())
    assert provenance["kernels"] == []
    assert "layers: PyTorch (ATARI_DQN_ISA is none)" in provenance["acceleration"]


@pytest.mark.skipif(instruction_set() not in ("avx2", "neon"), reason="names of AVX-512 have no suffix")
def test_run_records_the_instruction_set_of_its_kernels(tiny_run: Callable[..., Path]) -> None:
    recorded = json.loads((tiny_run() / "provenance.json").read_text())["kernels"]
    assert recorded == list(kernels_here())
    assert recorded[0] in ("fp32 vectors of AVX2", "fp32 vectors of NEON")
