"""A live game is the game that `dqn eval` plays."""

from collections.abc import Sequence

import pytest
from tiny import MEMORY, begun, tiny_spec

from atari_dqn.evaluation.evaluate import evaluate
from atari_dqn.play.agent_player import AgentPlayer
from atari_dqn.play.live_game import LiveGame, Player
from atari_dqn.run.scores import EvaluationEpisode
from atari_dqn.spec.schema import Spec
from atari_dqn.types import StepBatch


def played(spec: Spec, episode: int, player: Player) -> EvaluationEpisode:
    game = LiveGame(spec, episode)
    game.begin()
    while game.result is None:
        game.step(player)
    return game.result


@pytest.mark.parametrize("overrides", [(), MEMORY, ("evaluation.epsilon=0.5",)], ids=["plain", "memory", "ε"])
def test_an_agents_game_has_the_result_of_its_evaluation(overrides: Sequence[str]) -> None:
    spec = tiny_spec(*overrides)
    with begun(spec) as training:
        network = training.learner.online
    info = LiveGame(spec, 0).info
    live = [played(spec, episode, AgentPlayer(network, spec, info, episode)) for episode in range(3)]
    assert tuple(live) == evaluate(network, spec, episodes=3)


class Tape:
    """Plays the same action for ever, and keeps the rewards that it sees."""

    def __init__(self, action: int) -> None:
        self.action, self.rewards = action, 0.0

    def act(self, step: StepBatch) -> int:
        self.rewards += float(step.reward[0])
        return self.action


@pytest.mark.parametrize("action", [0, 1])
def test_the_score_is_the_sum_of_the_rewards(action: int) -> None:
    tape, game = Tape(action), LiveGame(tiny_spec(), 0)
    game.begin()
    before = 0.0
    while game.result is None:
        before = game.score
        game.step(tape)
    assert tape.rewards == before
    assert game.result.episode_return == game.score


def test_every_frame_is_shown_but_those_before_the_game() -> None:
    game = LiveGame(tiny_spec(), 0)
    assert len(game.begin()) == 1
    assert len(game.step(Tape(0))) == tiny_spec().env.frame_skip
