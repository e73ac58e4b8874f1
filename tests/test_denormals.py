import subprocess
import sys

import pytest
import torch

PROGRAM = """
import torch
from atari_dqn.assembly.parts import build_network
from atari_dqn.spec.loader import load_spec
from atari_dqn.types import GameInfo

torch.set_num_threads(2)
info = GameInfo(game="pong", action_names=tuple("abcdef"), frame_shape=(84, 84), rom_md5="")
build_network(load_spec("runs/pong_smoke.toml").spec, info, torch.device("cpu"))
tiny = torch.full((1_000_000,), 1e-30) * 1e-10
print(tiny.count_nonzero().item())
"""


@pytest.mark.slow
def test_every_thread_treats_denormal_numbers_as_zero() -> None:
    assert torch.set_flush_denormal(True), "this processor cannot"
    result = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "0"
