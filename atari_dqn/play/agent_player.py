"""An agent in a live game, with the network outputs and the random numbers of `dqn eval`."""

from __future__ import annotations

import numpy as np

from atari_dqn.agent.network import QNetwork
from atari_dqn.envs.stacking import FrameStacker
from atari_dqn.evaluation.evaluate import STREAM
from atari_dqn.evaluation.outputs import make_outputs
from atari_dqn.rng import numpy_stream
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo, StepBatch

_SLOT = np.zeros(1, dtype=np.int64)
"""The index of the only environment."""


class AgentPlayer:
    """Acts ε-greedily in one episode."""

    def __init__(self, network: QNetwork, spec: Spec, info: GameInfo, episode: int) -> None:
        self._epsilon, self._num_actions = spec.evaluation.epsilon, info.num_actions
        self._playing = np.array([episode])
        self._stream = numpy_stream(spec.seed, STREAM, "episode", episode, "actions")
        self._stacker = FrameStacker(envs=1, stack=spec.env.stack_frames, frame_shape=info.frame_shape)
        self._outputs = make_outputs(
            network,
            envs=1,
            max_abs_reward=spec.learner.max_abs_reward,
            with_returns=False,
            captured=spec.system.cuda_graphs,
        )
        self._action = 0

    def act(self, step: StepBatch) -> int:
        """Select the action that follows a step."""
        stacks = self._stacker.push(step)
        self._outputs.observe(np.array([self._action]), step)
        explores = self._stream.random() < self._epsilon
        self._action = int(self._stream.integers(self._num_actions))
        needed = _SLOT[:0] if explores else _SLOT
        for output in self._outputs.compute(stacks, self._playing, acting=_SLOT, needed=needed).values():
            self._action = int(output.q_values.argmax())
        return self._action
