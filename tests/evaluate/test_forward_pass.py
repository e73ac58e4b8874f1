"""The forward pass of evaluations, which a GPU captures: what it may touch, and how long it lives."""

import gc
import weakref
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from tiny import CPU, tiny_spec
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from atari_dqn.agent.network import QNetwork
from atari_dqn.assembly.parts import build_network, initial_network
from atari_dqn.envs.games import game_info
from atari_dqn.evaluation.outputs import FeedForwardOutputs, _Forward
from atari_dqn.fast import structure

META = torch.device("meta")
"""Stands for a GPU: its tensors have shapes only, and do not mix with those of the host."""


class Devices(TorchDispatchMode):
    """Records the devices of every tensor that an operation reads or makes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[torch.device] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = function(*args, **(kwargs or {}))
        leaves = tree_leaves((args, kwargs, made))
        self.found |= {leaf.device for leaf in leaves if isinstance(leaf, torch.Tensor)}
        return made


@pytest.mark.parametrize(
    "overrides",
    [
        (), ("toggles.distribution=c51", "toggles.noisy=true"), ("toggles.distribution=qr_dqn",),
        ("toggles.distribution=hl_gauss",), ("toggles.distribution=iqn",),
        ("network.kind=impala", "network.spectral_norm=true", "network.layer_norm=true"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_forward_pass_copies_nothing_from_the_host(
    overrides: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QNetwork, "torso_precision", lambda *_: nullcontext())  # META has no autocast
    spec = tiny_spec(*overrides)
    shape = (8, spec.env.stack_frames, *game_info(spec).frame_shape)
    network = initial_network(spec, game_info(spec), "network")
    structure.apply_plan(structure.inspect_network(network, torch.device("cuda"), fuse=True), network)
    forward = _Forward(network.to(META), with_returns=True)
    with torch.inference_mode(), Devices() as devices:
        forward._frames = torch.zeros(shape, dtype=torch.uint8, device=META)
        forward.run()
    assert devices.found == {META}


def test_outputs_are_freed_at_the_end_of_an_evaluation_not_by_a_later_garbage_collection() -> None:
    spec = tiny_spec()
    outputs = FeedForwardOutputs(build_network(spec, game_info(spec), CPU), with_returns=True, captured=True)
    frames = np.zeros((1, spec.env.stack_frames, *game_info(spec).frame_shape), dtype=np.uint8)
    slot = np.zeros(1, dtype=np.int64)
    outputs.compute(frames, slot, acting=slot, needed=slot)
    forward = weakref.ref(outputs._forward)
    gc.disable()
    try:
        del outputs
        assert forward() is None
    finally:
        gc.enable()
