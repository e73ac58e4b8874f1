"""Scores of frozen weights: own environments, own random streams, nothing of training touched.

Episode i of an evaluation is the same game whatever runs beside it: its no-ops, sticky draws and explorations
come from streams named by i, its emulator begins from power-on, and the network sees it at slot i mod 8 of
batches of 8, because batches of another shape may round differently. Where a game stands still, what the
network expected is not worked out again: weights are frozen, and the same frames at the same slot give the
same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, Int64, UInt8
from torch import Tensor

from atari_dqn.agent.distributions import Categorical, Prediction, Value
from atari_dqn.agent.network import QNetwork
from atari_dqn.clock import steps_to_frames
from atari_dqn.envs.games import make_lanes
from atari_dqn.envs.pool import WorkerDiedError
from atari_dqn.envs.stacking import FrameStacker
from atari_dqn.evaluation.traces import BestReturn, Tracer
from atari_dqn.machine.sizes import MOST_QUANTILES_TRACED
from atari_dqn.rng import numpy_stream
from atari_dqn.run.scores import EvaluationEpisode
from atari_dqn.spec.schema import Env, Spec
from atari_dqn.types import Lanes, StepBatch

FORWARD_BATCH = 8
STREAM = "evaluation"
_IDLE = -1
Finish = Callable[[int, EvaluationEpisode], None]
"""Takes the number and the outcome of an episode that has ended."""


class StoppedError(Exception):
    """The evaluation was asked to stop; nothing of it counts."""


def evaluation_env(spec: Spec) -> Env:
    """Return the environment an evaluation plays on: the training's, with its own cap; lives do not count."""
    return replace(spec.env, max_episode_frames=spec.evaluation.max_episode_frames, life_loss_ends_skip=False)


def evaluate(
    network: QNetwork,
    spec: Spec,
    *,
    episodes: int,
    finished: Mapping[int, EvaluationEpisode] | None = None,
    on_finished: Finish | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    tracer: Tracer | None = None,
) -> tuple[EvaluationEpisode, ...]:
    """Play `episodes` games with ε-greedy actions and return them in order.

    Games that are `finished`, by their numbers, are not played again; `on_finished` gets each other one as it
    ends. `on_progress` gets the number of episodes done, at the start and after each, and their total;
    `StoppedError` once `stop()` is true. A `tracer` gets every decision, which changes none.
    """
    done = {episode: game for episode, game in (finished or {}).items() if 0 <= episode < episodes}
    missing = [episode for episode in range(episodes) if episode not in done]

    def finish(episode: int, game: EvaluationEpisode) -> None:
        done[episode] = game
        if on_finished:
            on_finished(episode, game)
        if on_progress:
            on_progress(len(done), episodes)

    if on_progress:
        on_progress(len(done), episodes)
    if missing:
        _play(network, spec, missing, finish=finish, stop=stop, tracer=tracer)
    return tuple(done[episode] for episode in range(episodes))


def _play(
    network: QNetwork,
    spec: Spec,
    episodes: Sequence[int],
    *,
    finish: Finish,
    stop: Callable[[], bool],
    tracer: Tracer | None,
) -> None:
    """Play the episodes of these numbers."""
    num_lanes = min(spec.system.evaluation_lanes, len(episodes))
    lanes = make_lanes(
        game=spec.game,
        env=evaluation_env(spec),
        num_lanes=num_lanes,
        workers=min(spec.system.evaluation_workers, num_lanes),
        seed=spec.seed,
        stream=STREAM,
        power_on_reset=True,
        episodes=episodes,
    )
    lanes.stop_waiting_when(stop)
    try:
        _Evaluation(network, spec, lanes, episodes, tracer, finish).play(stop)
    except WorkerDiedError as error:
        if stop():  # nobody waits for these games any longer
            raise StoppedError from error
        raise
    finally:
        lanes.close()


@dataclass(frozen=True, slots=True)
class _Expected:
    """What the network expects at one lane."""

    values: Float32[np.ndarray, "A"]
    best_return: BestReturn | None
    """None where only means are predicted, or nobody asks."""


class _Evaluation:
    """Lane e of E plays the e-th of the episodes, the (e + E)-th, and so on, and idles after its last."""

    def __init__(
        self,
        network: QNetwork,
        spec: Spec,
        lanes: Lanes,
        episodes: Sequence[int],
        tracer: Tracer | None,
        finish: Finish,
    ) -> None:
        self.network, self.spec, self.lanes, self.tracer = network, spec, lanes, tracer
        self.device = next(network.parameters()).device
        self.finish, self.left = finish, len(episodes)
        self.waiting = [iter(episodes[lane :: lanes.num_lanes]) for lane in range(lanes.num_lanes)]
        self.playing = np.array([next(episodes_of) for episodes_of in self.waiting])
        """By lane, the number of its episode; `_IDLE` after its last."""
        self.resetting = np.zeros(lanes.num_lanes, dtype=np.bool_)
        self.streams = [self._stream(int(episode)) for episode in self.playing]
        self.returns = np.zeros(lanes.num_lanes)
        self.steps = np.zeros(lanes.num_lanes, dtype=np.int64)
        self.stacker = FrameStacker(
            lanes=lanes.num_lanes, stack=spec.env.stack_frames, frame_shape=lanes.info.frame_shape
        )
        self.known: dict[int, tuple[UInt8[np.ndarray, "S H W"], _Expected]] = {}
        """By lane, the frames that the network was asked about last, and its answer."""

    def play(self, stop: Callable[[], bool]) -> None:
        stacks = self.stacker.push(self.lanes.reset())
        while self.left:
            if stop():
                raise StoppedError
            self.lanes.send(self._actions(stacks))
            step = self.lanes.recv()
            stacks = self.stacker.push(step)
            self._count(step)

    def _actions(self, stacks: UInt8[np.ndarray, "E S H W"]) -> Int64[np.ndarray, "E"]:
        # A reset row ignores its action: a draw for it would shift the stream of all but a lane's first game.
        wanted = np.flatnonzero((self.playing != _IDLE) & ~self.resetting)
        explores, actions = self._draw(wanted)
        greedy = wanted[~explores[wanted]]
        expected = self._expected(stacks, greedy if self.tracer is None else wanted)
        for lane in greedy:
            actions[lane] = expected[lane].values.argmax()
        self._trace(actions, explores, expected)
        return actions

    def _draw(self, lanes: Int64[np.ndarray, "n"]) -> tuple[Bool[np.ndarray, "E"], Int64[np.ndarray, "E"]]:
        """Return which of these lanes explore, and a random action for each."""
        explores = np.zeros(self.lanes.num_lanes, dtype=np.bool_)
        actions = np.zeros(self.lanes.num_lanes, dtype=np.int64)
        for lane in lanes:
            explores[lane] = self.streams[lane].random() < self.spec.evaluation.epsilon
            actions[lane] = self.streams[lane].integers(self.lanes.info.num_actions)
        return explores, actions

    @torch.inference_mode()
    def _expected(
        self, stacks: UInt8[np.ndarray, "E S H W"], asked: Int64[np.ndarray, "n"]
    ) -> dict[int, _Expected]:
        """Return what is expected at the lanes that are asked for."""
        asked_anew = [lane for lane in asked.tolist() if not self._stands_still(lane, stacks[lane])]
        for batch in _slots(asked_anew, self.playing):
            slots, lanes = list(batch), list(batch.values())
            frames = np.zeros((FORWARD_BATCH, *stacks.shape[1:]), dtype=np.uint8)
            frames[slots] = stacks[lanes]
            prediction = self.network.predict(torch.from_numpy(frames).to(self.device))
            q_values = prediction.q_values()
            values = q_values.cpu().numpy()
            best_returns = (
                [None] * len(values) if self.tracer is None else _best_returns(prediction, q_values)
            )
            for slot, lane in batch.items():
                self.known[lane] = (frames[slot], _Expected(values[slot], best_returns[slot]))
        return {lane: self.known[lane][1] for lane in asked.tolist()}

    def _stands_still(self, lane: int, frames: UInt8[np.ndarray, "S H W"]) -> bool:
        return lane in self.known and np.array_equal(self.known[lane][0], frames)

    def _trace(
        self,
        actions: Int64[np.ndarray, "E"],
        explores: Bool[np.ndarray, "E"],
        expected: dict[int, _Expected],
    ) -> None:
        if self.tracer is None:
            return
        for lane, at_lane in expected.items():
            self.tracer.decided(
                int(self.playing[lane]),
                action=int(actions[lane]),
                explored=bool(explores[lane]),
                values=at_lane.values,
                best_return=at_lane.best_return,
            )

    def _count(self, step: StepBatch) -> None:
        """Add one step of every lane, and finish the episodes that ended with it."""
        self.returns += step.reward
        self.steps += ~step.first
        self.resetting = step.ended
        for lane in np.flatnonzero(self.resetting):
            self._finish(int(lane), bool(step.terminated[lane]))

    def _finish(self, lane: int, game_over: bool) -> None:
        episode = int(self.playing[lane])
        if episode != _IDLE:
            game = EvaluationEpisode(
                episode_return=float(self.returns[lane]),
                length_frames=steps_to_frames(int(self.steps[lane]), frame_skip=self.spec.env.frame_skip),
                end_reason="game_over" if game_over else "frame_cap",
            )
            self.left -= 1
            self.finish(episode, game)
        self.returns[lane] = 0.0
        self.steps[lane] = 0
        self.playing[lane] = next(self.waiting[lane], _IDLE)
        self.known.pop(lane, None)  # the next game may have another slot
        self.streams[lane] = self._stream(int(self.playing[lane]))

    def _stream(self, episode: int) -> np.random.Generator:
        return numpy_stream(self.spec.seed, STREAM, "episode", int(episode), "actions")


def _best_returns(prediction: Prediction, q_values: Float[Tensor, "E A"]) -> list[BestReturn | None]:
    """Return how each row's best action's return might come out; None where only its mean is predicted."""
    if isinstance(prediction, Value):
        return [None] * len(q_values)
    best = q_values.argmax(dim=1)
    rows = torch.arange(len(best), device=best.device)
    points, mass = (part[rows, best] for part in prediction.distribution())
    atoms, count = isinstance(prediction, Categorical), points.shape[1]
    if not atoms and count > MOST_QUANTILES_TRACED:
        kept = torch.linspace(0, count - 1, MOST_QUANTILES_TRACED, device=best.device).round().long()
        points, mass = points[:, kept], torch.full_like(mass[:, kept], 1 / MOST_QUANTILES_TRACED)
    return [
        BestReturn(points=points_of, mass=mass_of, atoms=atoms)
        for points_of, mass_of in zip(points.cpu().numpy(), mass.cpu().numpy(), strict=True)
    ]


def _slots(lanes: list[int], playing: Int64[np.ndarray, "E"]) -> list[dict[int, int]]:
    """Return batches, each a map from slot to lane; an episode's slot never depends on its neighbours."""
    batches: list[dict[int, int]] = []
    for lane in lanes:
        slot = int(playing[lane]) % FORWARD_BATCH
        batch = next((batch for batch in batches if slot not in batch), None)
        if batch is None:
            batch = {}
            batches.append(batch)
        batch[slot] = lane
    return batches
