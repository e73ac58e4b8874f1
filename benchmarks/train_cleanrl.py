"""Train one of CleanRL's scripts for some seconds and print its emulator frames/s as JSON.

`versus_cleanrl.py` runs this, in an environment that holds what the script needs and nothing of ours. The
script runs as it is: steps are counted inside the `step` of its vector environment, from the end of the
prefill and the warm-up on, and the last one ends it.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import runpy
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from worker_options import software, worker_parser

import gymnasium
import stable_baselines3.common.atari_wrappers
import stable_baselines3.common.buffers
import torch
from ale_py.registration import register_v0_v4_envs

FRAME_SKIP = 4
UPDATE_PERIOD_STEPS = 4
PACKAGES = ("cleanrl", "gymnasium", "stable-baselines3", "ale-py", "numpy")


class Done(BaseException):
    """Ends a script from within; no handler of its own catches this."""


class CountedEnv(gymnasium.vector.SyncVectorEnv):
    """Measures for `seconds` once `from_steps` agent steps are done, then raises `Done`."""

    from_steps = 0
    seconds = 0.0
    steps = 0
    began = 0.0
    frames_per_second = float("nan")

    def step(self, actions: Any) -> Any:
        """Step, and count."""
        found, counts = super().step(actions), type(self)
        counts.steps += self.num_envs
        if counts.steps <= self.from_steps:
            counts.began = time.perf_counter()
            return found
        elapsed = time.perf_counter() - self.began
        if elapsed >= self.seconds:
            counts.frames_per_second = (self.steps - self.from_steps) * FRAME_SKIP / elapsed
            raise Done
        return found


def find_script(algorithm: str, checkout: str | None) -> Path:
    """Return the script of a checkout, else of the installed package."""
    if checkout:
        return Path(checkout).resolve() / "cleanrl" / f"{algorithm}.py"
    spec = importlib.util.find_spec("cleanrl")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / f"{algorithm}.py"


def supply_modules(checkout: str | None) -> None:
    """Let scripts newer than the package find their helpers: the checkout's, else what those copy."""
    if checkout and (Path(checkout) / "cleanrl_utils").is_dir():
        sys.path.insert(0, str(Path(checkout).resolve()))
        return
    sys.modules["cleanrl_utils.atari_wrappers"] = stable_baselines3.common.atari_wrappers
    sys.modules["cleanrl_utils.buffers"] = stable_baselines3.common.buffers


def main() -> None:
    parser = worker_parser(__doc__)
    parser.add_argument("--algorithm", required=True, help="name of the script, without .py")
    parser.add_argument("--checkout", help="folder of CleanRL's repository; without it, the package")
    options = parser.parse_args()
    script = find_script(options.algorithm, options.checkout)
    torch.set_num_threads(options.threads)
    CountedEnv.from_steps = options.prefill_steps + options.warm_up_updates * UPDATE_PERIOD_STEPS
    CountedEnv.seconds = options.seconds
    gymnasium.vector.SyncVectorEnv = CountedEnv
    supply_modules(options.checkout)
    register_v0_v4_envs()  # importing ale-py does not, with a Gymnasium this old
    theirs = {
        "env-id": options.game,
        "total-timesteps": 10**9,
        "num-envs": options.envs,
        "buffer-size": options.capacity_steps,
        "learning-starts": options.prefill_steps,
        "train-frequency": UPDATE_PERIOD_STEPS,
        "target-network-frequency": options.target_period_updates * UPDATE_PERIOD_STEPS,
        "batch-size": 32,
        "start-e": options.epsilon,
        "end-e": options.epsilon,
    }
    sys.argv = [str(script), *(word for key, value in theirs.items() for word in (f"--{key}", str(value)))]
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(Done):
        os.chdir(folder)  # it writes its logs to runs/
        runpy.run_path(str(script), run_name="__main__")
    print(
        json.dumps(
            {
                "frames_per_second": CountedEnv.frames_per_second,
                "script": script.name,
                "script_sha256": hashlib.sha256(script.read_bytes()).hexdigest(),
                **software(PACKAGES),
            }
        )
    )


if __name__ == "__main__":
    main()
