"""How far ONNX models lie from the networks that they were made of, on 1,000 frames of Pong for each.

The agents have initial weights, with those of the head ten times as large, so that q-values have the size of
trained ones. Each computes in bf16 itself, and its model in fp32: the JSON has the largest difference of a
q-value in units of max(1, |q|), and the frames with another greedy action, for the model and for bf16.
"""

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from time import monotonic

from atari_dqn.assembly.parts import build_network
from atari_dqn.envs.games import game_info
from atari_dqn.evaluation.frozen_agent import FrozenAgent
from atari_dqn.evaluation.onnx_check import TOLERANCE, check_onnx
from atari_dqn.evaluation.onnx_model import exact_network, onnx_model
from atari_dqn.run.directory import RunDirectory
from atari_dqn.spec.loader import load_spec
from hardware import circumstances

import torch

AGENTS = {
    "DQN": "pong_trackA",
    "dueling": "pong_trackB",
    "C51": "c51",
    "QR-DQN": "qr_dqn",
    "IQN": "iqn",
    "Rainbow": "rainbow",
    "R2D2": "r2d2",
    "BTR": "btr_small",
}
HEAD_FACTOR = 10


def initial_agent(name: str) -> FrozenAgent:
    spec = load_spec(name, ["game=pong", "learner.precision=bf16", "learner.compile=false"]).spec
    info = game_info(spec)
    network = build_network(spec, info, torch.device("cpu"))
    with torch.no_grad():
        for weight_name, weight in network.head.named_parameters():
            if weight_name.endswith("weight"):
                weight.mul_(HEAD_FACTOR)
    absent = Path("absent")
    return FrozenAgent(
        run=RunDirectory(absent),
        checkpoint=absent,
        choice="last",
        step=0,
        spec=spec,
        info=info,
        network=network,
    )


def measure(name: str) -> dict[str, object]:
    agent = initial_agent(name)
    network = exact_network(agent)
    begun = monotonic()
    model = onnx_model(agent, network)
    check = check_onnx(model, agent, network)
    assert check.low_precision is not None
    row = asdict(check)
    row["low_precision"] = dict(
        zip(("largest_difference", "other_actions"), check.low_precision, strict=True)
    )
    return {"spec": name, **row, "model_bytes": len(model), "seconds": round(monotonic() - begun, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = {}
    for kind, name in AGENTS.items():
        rows[kind] = measure(name)
        print(kind, json.dumps(rows[kind]), flush=True)
    result = {**circumstances(), "tolerance": TOLERANCE, "agents": rows}
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
