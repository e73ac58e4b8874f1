"""Convert an agent to ONNX; `onnx_check` compares the model with the agent.

The model computes in fp32 what the agent's network computes: pixels are scaled inside, noisy layers use their
means, distributions are reduced to q-values, and an IQN's fractions are evenly spaced.

B observations, S stacked frames, H×W one frame, A actions, R numbers of the recurrent state.

    observation u8[B,S,H,W] → q_values f32[B,A]
    observation u8[B,S,H,W], last_action i64[B], last_reward f32[B], state f32[B,R]
                            → q_values f32[B,A], next_state f32[B,R]
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Any

import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor, nn

from atari_dqn import __version__
from atari_dqn.agent.memory import RecurrentQNetwork
from atari_dqn.agent.network import QNetwork
from atari_dqn.assembly.parts import initial_network
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.errors import UserError
from atari_dqn.evaluation.frozen_agent import FrozenAgent
from atari_dqn.run.scores import score_protocol
from atari_dqn.spec.digest import spec_digest

OPSET = 18
_PACKAGES = ("onnx", "onnxscript", "onnxruntime")
_EXAMPLES = 2
"""Observations in the batch that the exporter traces; the batch size of the model is free."""


def require_onnx() -> None:
    """Import the packages of the extra; raise a `UserError` that names it if one is missing.

    onnxruntime sends data about its use to its makers unless a variable says otherwise.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    for name in _PACKAGES:
        try:
            import_module(name)
        except ImportError as error:
            raise UserError(
                f"--onnx needs {name}; install it with `pip install 'atari-dqn[onnx]'`"
            ) from error


def exact_network(agent: FrozenAgent) -> QNetwork:
    """Return the network of an agent on the CPU, in fp32 and plain PyTorch."""
    spec = agent.spec
    fp32 = replace(spec, learner=replace(spec.learner, precision="fp32"))
    network = initial_network(fp32, agent.info, "network")
    network.load_state_dict(agent.network.state_dict())
    return network.eval()


def onnx_model(agent: FrozenAgent, network: QNetwork) -> bytes:
    """Convert a network of `exact_network`; the result's metadata has game, actions and protocol.

    `UserError` if a part of the network fixes the batch size.
    """
    import onnx

    step = _step_of(network)
    with _quiet(), interrupts_blocked():  # the exporter imports, which Ctrl-C would leave half done
        program = torch.onnx.export(
            step,
            step.example(agent),
            input_names=list(step.inputs),
            output_names=list(step.outputs),
            opset_version=OPSET,
            dynamo=True,
            dynamic_shapes=tuple({0: torch.export.Dim("batch")} for _ in step.inputs),
            verbose=False,
        )
    assert program is not None, "the exporter returns a program"
    model = program.model_proto
    _require_free_batch(model)
    _remove_traces(model)
    onnx.helper.set_model_props(model, _metadata(agent))
    onnx.checker.check_model(model)
    data: bytes = model.SerializeToString()
    return data


class FeedForwardStep(nn.Module):
    """Computes the q-values of observations."""

    inputs: tuple[str, ...] = ("observation",)
    outputs: tuple[str, ...] = ("q_values",)

    def __init__(self, network: QNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, observation: UInt8[Tensor, "B S H W"]) -> Float[Tensor, "B A"]:
        """Compute the q-values."""
        return self.network.distribution(observation).q_values()

    def example(self, agent: FrozenAgent) -> tuple[Tensor, ...]:
        """Return arguments of the shapes and types of the agent's game."""
        shape = (_EXAMPLES, agent.spec.env.stack_frames, *agent.info.frame_shape)
        return (torch.zeros(shape, dtype=torch.uint8),)


class RecurrentStep(FeedForwardStep):
    """Computes the q-values of observations and the recurrent state after them."""

    inputs = ("observation", "last_action", "last_reward", "state")
    outputs = ("q_values", "next_state")
    network: RecurrentQNetwork

    def forward(  # type: ignore[override]  # an agent with memory has more arguments
        self,
        observation: UInt8[Tensor, "B S H W"],
        last_action: Int64[Tensor, "B"],
        last_reward: Float[Tensor, "B"],
        state: Float[Tensor, "B R"],
    ) -> tuple[Float[Tensor, "B A"], Float[Tensor, "B R"]]:
        """Compute the q-values and the state."""
        q, state = self.network.unroll(observation, last_action[:, None], last_reward[:, None], state)
        return q[:, 0], state

    def example(self, agent: FrozenAgent) -> tuple[Tensor, ...]:
        """Return arguments of the shapes and types of the agent's game and memory."""
        (observation,) = super().example(agent)
        last_action = torch.zeros(_EXAMPLES, dtype=torch.int64)
        return observation, last_action, torch.zeros(_EXAMPLES), self.first_state(_EXAMPLES)

    def first_state(self, batch: int) -> Float[Tensor, "B R"]:
        """Return the state at the beginning of a game."""
        return torch.zeros((batch, self.network.memory.width))


def _step_of(network: QNetwork) -> FeedForwardStep:
    return RecurrentStep(network) if isinstance(network, RecurrentQNetwork) else FeedForwardStep(network)


def _metadata(agent: FrozenAgent) -> dict[str, str]:
    """Collect the facts that a user of the model needs, and the protocol of the agent's own evaluations."""
    spec = agent.spec
    protocol = score_protocol(
        spec,
        episodes=spec.evaluation.full_episodes,
        checkpoint=agent.choice,
        rom_md5=agent.info.rom_md5,
    )
    return {
        "game": spec.game,
        "actions": " ".join(agent.info.action_names),
        "env_frames": str(agent.env_frames),
        "max_abs_reward": f"{spec.learner.max_abs_reward:g}",
        "protocol": protocol.short(),
        "protocol_fingerprint": protocol.digest(),
        "spec_digest": spec_digest(spec),
        "written_by": f"atari_dqn {__version__}",
    }


def _require_free_batch(model: Any) -> None:
    """Check the inputs: to the exporter, `len` of a tensor is the length of its example."""
    for value in model.graph.input:
        if not value.type.tensor_type.shape.dim[0].dim_param:
            raise UserError(
                f"the ONNX model would take {_EXAMPLES} observations only: a part of the network fixes the "
                "batch size; take it from `x.shape[0]`, not `len(x)`"
            )


def _remove_traces(model: Any) -> None:
    """Remove the stack traces of the exporter, which name files of this machine."""
    graphs = [model.graph, *model.functions]
    for part in (model, *graphs, *(node for graph in graphs for node in graph.node)):
        del part.metadata_props[:]


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the exporter's warnings on packages and its own deprecations."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
