"""What a start does not do: import PyTorch's compiler, take the memory of an empty replay."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from atari_dqn.replay.ring import FrameRing

TESTS = Path(__file__).parents[1]
UPDATES = """
import sys
sys.path.insert(0, {tests!r})
from tiny import begun, ticks_of, tiny_spec

for kind in ("adam", "deepmind_rmsprop"):
    with begun(tiny_spec(f"optimizer.kind={{kind}}", "replay.prefill_steps=20")) as training:
        ticks_of(training, 40)
        training.state_dict()
        assert training.clock.updates > 0
    print(kind, "torch._dynamo" in sys.modules)
"""
EMPTY = """
import psutil, torch
from atari_dqn.machine.allocator import keep_freed_memory
from atari_dqn.replay.ring import FrameRing

keep_freed_memory()
before = psutil.Process().memory_info().rss
ring = FrameRing(rows=50_000, num_envs=1, frame_shape=(84, 84), stack=4, device=torch.device("cpu"))
print(ring.frame.nbytes, psutil.Process().memory_info().rss - before)
"""


def output_of(program: str) -> str:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_training_without_compilation_does_not_import_pytorchs_compiler() -> None:
    assert output_of(UPDATES.format(tests=str(TESTS))) == "adam False\ndeepmind_rmsprop False\n"


@pytest.mark.slow
def test_empty_replay_takes_no_memory() -> None:
    held, taken = map(int, output_of(EMPTY).split())  # in a new process: others have freed memory to reuse
    assert held > 350e6
    assert taken < 50e6


def test_empty_replay_is_zero() -> None:
    ring = FrameRing(rows=10, num_envs=2, frame_shape=(3, 5), stack=4, device=torch.device("cpu"))
    assert (ring.frame.shape, ring.frame.dtype, ring.frame.any().item()) == ((21, 3, 5), torch.uint8, False)
