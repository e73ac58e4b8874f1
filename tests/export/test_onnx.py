"""Agents as ONNX: the q-values of the network, within the stated tolerance, on frames of the game."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import CPU, MEMORY, tiny

from atari_dqn.assembly.parts import build_network
from atari_dqn.envs.games import game_info
from atari_dqn.errors import HaltedError, UserError
from atari_dqn.evaluation import onnx_model as exporter
from atari_dqn.evaluation.frozen_agent import FrozenAgent, load_frozen
from atari_dqn.evaluation.onnx_check import TOLERANCE, check_onnx
from atari_dqn.evaluation.onnx_model import exact_network, onnx_model
from atari_dqn.run.directory import RunDirectory
from atari_dqn.spec.loader import load_spec
from atari_dqn.spec.schema import Spec

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.slow  # the first export imports for ten seconds

AGENTS = {
    "dqn": "pong_trackA",
    "dueling": "pong_trackB",
    "c51": "c51",
    "qr_dqn": "qr_dqn",
    "iqn": "iqn",
    "rainbow": "rainbow",
    "r2d2": "r2d2",
    "btr": "btr_small",
}
SLOW = ("iqn",)
"""What the slow tests export; the thorough tests export the others."""


def frozen(spec: Spec) -> FrozenAgent:
    """An agent with initial weights, enlarged at the end: its q-values are of the size of trained ones."""
    info = game_info(spec)
    network = build_network(spec, info, CPU)
    with torch.no_grad():
        for name, weight in network.head.named_parameters():
            if name.endswith("weight"):
                weight.mul_(10)
    return FrozenAgent(
        run=RunDirectory(Path("absent")),
        checkpoint=Path("absent"),
        choice="last",
        step=10,
        spec=spec,
        info=info,
        network=network,
    )


def exported(agent: FrozenAgent) -> bytes:
    return onnx_model(agent, exact_network(agent))


@pytest.fixture(scope="module")
def agent() -> FrozenAgent:
    return frozen(tiny().spec)


@pytest.fixture(scope="module")
def model(agent: FrozenAgent) -> bytes:
    return exported(agent)


def test_a_model_has_the_q_values_of_its_agent(agent: FrozenAgent, model: bytes) -> None:
    check = check_onnx(model, agent, exact_network(agent), frames=1_000)
    assert check.frames == 1_000
    assert (check.largest_difference <= TOLERANCE, check.other_actions) == (True, 0)


@pytest.mark.slow
def test_a_model_with_memory_has_the_q_values_of_its_agent() -> None:
    agent = frozen(tiny(*MEMORY).spec)
    network = exact_network(agent)
    model = onnx_model(agent, network)
    check = check_onnx(model, agent, network, frames=400)
    assert (check.largest_difference <= TOLERANCE, check.other_actions) == (True, 0)
    session = onnxruntime.InferenceSession(model)
    assert [value.name for value in session.get_inputs()] == [
        "observation", "last_action", "last_reward", "state",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [pytest.param(AGENTS[kind], id=kind, marks=pytest.mark.slow) for kind in SLOW]
    + [
        pytest.param(AGENTS[kind], id=kind, marks=pytest.mark.thorough) for kind in AGENTS if kind not in SLOW
    ],
)
def test_every_kind_of_agent_has_its_q_values_on_frames_of_pong(name: str) -> None:
    agent = frozen(load_spec(name, ["game=pong", "learner.precision=fp32", "learner.compile=false"]).spec)
    network = exact_network(agent)
    check = check_onnx(onnx_model(agent, network), agent, network, frames=1_000)
    assert (check.frames, check.other_actions, check.low_precision) == (1_000, 0, None)
    assert check.largest_difference <= TOLERANCE


def test_any_number_of_observations_is_a_batch(agent: FrozenAgent, model: bytes) -> None:
    session = onnxruntime.InferenceSession(model)
    observations = np.random.default_rng(1).integers(0, 256, (13, 4, 36, 36), dtype=np.uint8)
    (all_at_once,) = session.run(None, {"observation": observations})
    one_by_one = [session.run(None, {"observation": each[None]})[0][0] for each in observations]
    np.testing.assert_allclose(all_at_once, one_by_one, atol=1e-5)


@pytest.mark.slow
def test_a_network_that_fixes_its_batch_size_is_an_error(
    agent: FrozenAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = exact_network(agent)
    encode = network.torso.encode
    monkeypatch.setattr(network.torso, "encode", lambda frames: encode(frames).view(len(frames), -1))
    with pytest.raises(UserError, match=r"would take 2 observations only: .* from `x.shape\[0\]`"):
        onnx_model(agent, network)


@pytest.mark.slow
def test_noise_is_off_in_a_model() -> None:
    agent = frozen(tiny("toggles.noisy=true", "network.noisy_sigma=0.5").spec)
    model = exported(agent)
    session = onnxruntime.InferenceSession(model)
    frames = np.full((2, 4, 36, 36), 200, np.uint8)
    first, second = (session.run(None, {"observation": frames})[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not any("Random" in node.op_type for node in onnx.load_from_string(model).graph.node)


def test_the_metadata_have_the_protocol_and_no_path_of_this_machine(agent: FrozenAgent, model: bytes) -> None:
    properties = {each.key: each.value for each in onnx.load_from_string(model).metadata_props}
    assert properties["game"] == "catch"
    assert properties["actions"].split() == list(agent.info.action_names)
    assert len(properties["protocol_fingerprint"]) == 12
    assert str(Path(torch.__file__).parent).encode() not in model
    assert str(Path(__file__).parents[2]).encode() not in model


def test_the_metadata_are_of_the_agent_and_of_the_final_evaluation_of_its_run(
    tiny_run: Callable[..., Path],
) -> None:
    path = tiny_run()
    agent = load_frozen(path, CPU)
    properties = {each.key: each.value for each in onnx.load_from_string(exported(agent)).metadata_props}
    provenance = json.loads((path / "provenance.json").read_text())
    assert properties == {
        "game": "catch",
        "actions": " ".join(agent.info.action_names),
        "env_frames": "1200",
        "max_abs_reward": "1",
        "protocol": (
            "ε 0.05 · sticky 0 · no-op 1–30 · cap 120 frames · minimal actions · skip 4 · 36×36 area · "
            "3 episodes · last weights · trained with life loss terminal and rewards within ±1 · ale-py – · "
            "ROM –"
        ),
        "protocol_fingerprint": (path / "eval_log.csv").read_text().splitlines()[-1].rpartition(",")[2],
        "spec_digest": provenance["spec"]["digest"],
        "written_by": f"atari_dqn {provenance['versions']['atari_dqn']}",
    }


def test_a_model_of_other_weights_is_not_accepted(agent: FrozenAgent, model: bytes) -> None:
    network = exact_network(agent)
    with torch.no_grad():
        next(network.head.parameters()).add_(0.01)
    said = "the ONNX model differs from the agent .*; the ONNX file was not written"
    with pytest.raises(HaltedError, match=said):
        check_onnx(model, agent, network, frames=80)


def test_a_model_that_is_not_finite_is_not_accepted(agent: FrozenAgent) -> None:
    network = exact_network(agent)
    with torch.no_grad():
        next(network.head.parameters()).fill_(torch.nan)
    with pytest.raises(HaltedError, match="the ONNX model differs from the agent"):
        check_onnx(onnx_model(agent, network), agent, network, frames=8)


@pytest.mark.slow
def test_what_bf16_differs_by_is_reported(agent: FrozenAgent) -> None:
    spec = agent.spec
    low = frozen(replace(spec, learner=replace(spec.learner, precision="bf16")))
    network = exact_network(low)
    check = check_onnx(onnx_model(low, network), low, network, frames=80)
    assert check.low_precision is not None
    assert 1e-5 < check.low_precision[0] < 0.5
    assert "bf16 differs by" in str(check)


def test_onnxruntime_sends_no_data_about_its_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORT_DISABLE_TELEMETRY", raising=False)
    monkeypatch.setattr(exporter, "import_module", lambda name: None)
    exporter.require_onnx()
    assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"
