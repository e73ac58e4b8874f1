"""The process of the evaluator: for each order it plays an evaluation with the newest published weights."""

from __future__ import annotations

from dataclasses import replace
from multiprocessing.connection import Connection

import msgspec
import torch

from atari_dqn.actors.process import CarryOut, run_by_orders
from atari_dqn.actors.snapshot import SharedSnapshot
from atari_dqn.actors.weights import FlatWeights
from atari_dqn.assembly.parts import build_network
from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.run.scores import EvaluationEpisode
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo

Games = tuple[EvaluationEpisode, ...]


def run_evaluator(
    pipe: Connection, parent: int | None, spec: Spec, info: GameInfo, published: SharedSnapshot, episodes: int
) -> None:
    """Evaluate by orders."""
    run_by_orders(pipe, parent, lambda: _evaluating(spec, info, published, episodes))


def decode_games(answer: bytes) -> Games:
    """Return the games of an answer."""
    return msgspec.json.decode(answer, type=Games)


def _evaluating(spec: Spec, info: GameInfo, published: SharedSnapshot, episodes: int) -> CarryOut:
    """Make what plays evaluations: a network of its own, and environments in this process."""
    network = build_network(spec, info, torch.device("cpu")).requires_grad_(False)
    weights = FlatWeights(network)
    own = replace(spec, system=replace(spec.system, evaluation_workers=0))

    def carry_out(_: bytes) -> bytes:
        weights.write(published.fetch(least_version=0)[1])
        return msgspec.json.encode(evaluate(network, own, episodes=episodes))

    return carry_out
