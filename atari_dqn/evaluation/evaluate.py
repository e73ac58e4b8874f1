"""Evaluate frozen weights in environments and with random streams of their own, separate from training.

Episode i of an evaluation is the same game whatever is played in parallel: its no-ops, sticky actions and
exploration come from streams named by i, its emulator starts from power-on, and the network gets its frames
in a row that depends on i alone (`outputs.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from jaxtyping import Bool, Int64, UInt8

from atari_dqn.agent.network import QNetwork
from atari_dqn.clock import steps_to_frames
from atari_dqn.envs.games import make_envs
from atari_dqn.envs.pool import WorkerDiedError
from atari_dqn.envs.stacking import FrameStacker
from atari_dqn.evaluation.outputs import MakeOutputs, Output, make_outputs
from atari_dqn.evaluation.traces import Tracer
from atari_dqn.rng import numpy_stream
from atari_dqn.run.scores import EvaluationEpisode
from atari_dqn.spec.schema import Env, Spec
from atari_dqn.types import Environments, StepBatch

STREAM = "evaluation"
_IDLE = -1
Finish = Callable[[int, EvaluationEpisode], None]
"""A callback with the number and the result of an episode that has ended."""


class StoppedError(Exception):
    """The evaluation was stopped and has no result."""


def evaluation_env(spec: Spec) -> Env:
    """Return the training environment with the frame cap of evaluations and without effects of life loss."""
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
    """Play `episodes` games with the ε-greedy actions of a network and return them in order.

    The keyword arguments are those of `play_games`. `tracer` records every decision without changing it.
    """
    make = partial(
        make_outputs,
        network,
        max_abs_reward=spec.learner.max_abs_reward,
        with_returns=tracer is not None,
        captured=spec.system.cuda_graphs,
    )
    return play_games(
        make,
        spec,
        episodes=episodes,
        finished=finished,
        on_finished=on_finished,
        on_progress=on_progress,
        stop=stop,
        tracer=tracer,
    )


def play_games(
    make: MakeOutputs,
    spec: Spec,
    *,
    episodes: int,
    finished: Mapping[int, EvaluationEpisode] | None = None,
    on_finished: Finish | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    tracer: Tracer | None = None,
) -> tuple[EvaluationEpisode, ...]:
    """Play `episodes` games, ε-greedy for the q-values of some outputs, and return them in order.

    `finished`: games by episode number that are not played again; `on_finished` is called with every other
    game when it ends. `on_progress` is called at the start and after each game with the number of finished
    games and the total. Raise `StoppedError` once `stop()` is true.
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
        _play(make, spec, missing, finish=finish, stop=stop, tracer=tracer)
    return tuple(done[episode] for episode in range(episodes))


def _play(
    make: MakeOutputs,
    spec: Spec,
    episodes: Sequence[int],
    *,
    finish: Finish,
    stop: Callable[[], bool],
    tracer: Tracer | None,
) -> None:
    """Play the episodes with these numbers."""
    num_envs = min(spec.system.evaluation_envs, len(episodes))
    envs = make_envs(
        game=spec.game,
        env=evaluation_env(spec),
        num_envs=num_envs,
        workers=min(spec.system.evaluation_workers, num_envs),
        seed=spec.seed,
        stream=STREAM,
        power_on_reset=True,
        episodes=episodes,
    )
    envs.stop_waiting_when(stop)
    try:
        _Evaluation(make, spec, envs, episodes, tracer, finish).play(stop)
    except WorkerDiedError as error:
        if stop():  # after a stop, workers that have not answered are not waited for
            raise StoppedError from error
        raise
    finally:
        envs.close()


class _Evaluation:
    """Plays episodes e, e + E, … in environment e of E, which is idle after its last episode."""

    def __init__(
        self,
        make: MakeOutputs,
        spec: Spec,
        envs: Environments,
        episodes: Sequence[int],
        tracer: Tracer | None,
        finish: Finish,
    ) -> None:
        self.spec, self.envs, self.tracer = spec, envs, tracer
        self.finish, self.left = finish, len(episodes)
        self.waiting = [iter(episodes[slot :: envs.num_envs]) for slot in range(envs.num_envs)]
        self.playing = np.array([next(episodes_of) for episodes_of in self.waiting])
        """The number of the current episode by environment; `_IDLE` after the last one."""
        self.resetting = np.zeros(envs.num_envs, dtype=np.bool_)
        self.streams = [self._stream(int(episode)) for episode in self.playing]
        self.returns = np.zeros(envs.num_envs)
        self.steps = np.zeros(envs.num_envs, dtype=np.int64)
        self.stacker = FrameStacker(
            envs=envs.num_envs, stack=spec.env.stack_frames, frame_shape=envs.info.frame_shape
        )
        self.outputs = make(envs=envs.num_envs)

    def play(self, stop: Callable[[], bool]) -> None:
        step = self.envs.reset()
        stacks = self.stacker.push(step)
        self.outputs.observe(np.zeros(self.envs.num_envs, dtype=np.int64), step)
        while self.left:
            if stop():
                raise StoppedError
            actions = self._actions(stacks)
            self.envs.send(actions)
            step = self.envs.recv()
            stacks = self.stacker.push(step)
            self.outputs.observe(actions, step)
            self._count(step)

    def _actions(self, stacks: UInt8[np.ndarray, "E S H W"]) -> Int64[np.ndarray, "E"]:
        # A reset ignores its action. Drawing one would shift the stream of all games after the first.
        acting = np.flatnonzero((self.playing != _IDLE) & ~self.resetting)
        explores, actions = self._draw(acting)
        greedy = acting[~explores[acting]]
        needed = greedy if self.tracer is None else acting
        outputs = self.outputs.compute(stacks, self.playing, acting=acting, needed=needed)
        for slot in greedy:
            actions[slot] = outputs[slot].q_values.argmax()
        self._trace(actions, explores, outputs)
        return actions

    def _draw(self, envs: Int64[np.ndarray, "n"]) -> tuple[Bool[np.ndarray, "E"], Int64[np.ndarray, "E"]]:
        """Draw which of these environments explore, and a random action for each."""
        explores = np.zeros(self.envs.num_envs, dtype=np.bool_)
        actions = np.zeros(self.envs.num_envs, dtype=np.int64)
        for slot in envs:
            explores[slot] = self.streams[slot].random() < self.spec.evaluation.epsilon
            actions[slot] = self.streams[slot].integers(self.envs.info.num_actions)
        return explores, actions

    def _trace(
        self,
        actions: Int64[np.ndarray, "E"],
        explores: Bool[np.ndarray, "E"],
        outputs: dict[int, Output],
    ) -> None:
        if self.tracer is None:
            return
        for slot, output in outputs.items():
            self.tracer.record(
                int(self.playing[slot]),
                action=int(actions[slot]),
                explored=bool(explores[slot]),
                values=output.q_values,
                best_return=output.best_return,
            )

    def _count(self, step: StepBatch) -> None:
        """Add one step of every environment, and finish the episodes that ended with it."""
        self.returns += step.reward
        self.steps += ~step.first
        self.resetting = step.ended
        for slot in np.flatnonzero(self.resetting):
            self._finish(int(slot), bool(step.terminated[slot]))

    def _finish(self, slot: int, game_over: bool) -> None:
        episode = int(self.playing[slot])
        if episode != _IDLE:
            game = EvaluationEpisode(
                episode_return=float(self.returns[slot]),
                length_frames=steps_to_frames(int(self.steps[slot]), frame_skip=self.spec.env.frame_skip),
                end_reason="game_over" if game_over else "frame_cap",
            )
            self.left -= 1
            self.finish(episode, game)
        self.returns[slot] = 0.0
        self.steps[slot] = 0
        self.playing[slot] = next(self.waiting[slot], _IDLE)
        self.outputs.begin_game(slot)
        self.streams[slot] = self._stream(int(self.playing[slot]))

    def _stream(self, episode: int) -> np.random.Generator:
        return numpy_stream(self.spec.seed, STREAM, "episode", int(episode), "actions")
