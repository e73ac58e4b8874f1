"""Train Stable-Baselines3's DQN for some seconds and print its emulator frames/s as JSON.

`versus_sb3.py` runs this, in an environment that holds Stable-Baselines3 and nothing of ours.
"""

import argparse
import json
import time

from worker_options import software, worker_parser

import ale_py
import gymnasium
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import VecFrameStack

FRAME_SKIP = 4
UPDATE_PERIOD_STEPS = 4
PACKAGES = ("stable-baselines3", "gymnasium", "ale-py", "numpy")


class SpeedMeter(BaseCallback):
    """Measures for `seconds` once `from_steps` agent steps are done, then ends the training."""

    def __init__(self, *, from_steps: int, seconds: float) -> None:
        super().__init__()
        self.from_steps, self.seconds = from_steps, seconds
        self.began = 0.0
        self.frames_per_second = float("nan")

    def _on_step(self) -> bool:
        if self.num_timesteps < self.from_steps:
            return True
        if not self.began:
            self.began, self.steps_then = time.perf_counter(), self.num_timesteps
            return True
        elapsed = time.perf_counter() - self.began
        self.frames_per_second = (self.num_timesteps - self.steps_then) * FRAME_SKIP / elapsed
        return elapsed < self.seconds


def agent(options: argparse.Namespace) -> DQN:
    """Return DQN that learns from as many minibatches per agent step whatever the number of environments."""
    gymnasium.register_envs(ale_py)
    envs = options.envs
    env = VecFrameStack(make_atari_env(options.game, n_envs=envs, seed=1), n_stack=4)
    return DQN(
        "CnnPolicy",
        env,
        buffer_size=options.capacity_steps,
        learning_starts=options.prefill_steps,
        batch_size=32,
        train_freq=max(1, UPDATE_PERIOD_STEPS // envs),  # counted in steps of all environments together
        gradient_steps=max(1, envs // UPDATE_PERIOD_STEPS),
        target_update_interval=options.target_period_updates * UPDATE_PERIOD_STEPS,
        exploration_initial_eps=options.epsilon,
        exploration_final_eps=options.epsilon,
        seed=1,
        device="cpu",
    )


def main() -> None:
    options = worker_parser(__doc__).parse_args()
    torch.set_num_threads(options.threads)
    from_steps = options.prefill_steps + options.warm_up_updates * UPDATE_PERIOD_STEPS
    meter = SpeedMeter(from_steps=from_steps, seconds=options.seconds)
    agent(options).learn(total_timesteps=10**9, callback=meter)
    print(json.dumps({"frames_per_second": meter.frames_per_second, **software(PACKAGES)}))


if __name__ == "__main__":
    main()
