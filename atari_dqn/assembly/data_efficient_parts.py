"""Make the parts of agents that learn much from few frames: self-prediction, resets, annealing."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.optim import Optimizer

from atari_dqn.agent.learner import Learner
from atari_dqn.agent.losses import LossFn
from atari_dqn.agent.network import QNetwork
from atari_dqn.agent.redo import Recycled, ReDo
from atari_dqn.agent.resets import Resets, last_reset
from atari_dqn.agent.self_prediction import SelfPredictionLoss, SelfPredictiveNetwork
from atari_dqn.agent.upkeep import Upkeep
from atari_dqn.rng import torch_seed
from atari_dqn.schedule import AnnealedHorizon, ConstantHorizon, Horizon, HorizonSchedule
from atari_dqn.spec.constraints import decided, given
from atari_dqn.spec.schema import Spec
from atari_dqn.types import GameInfo


def self_predictive(spec: Spec, info: GameInfo, network: QNetwork) -> SelfPredictiveNetwork:
    """Make a network with self-prediction from the parts of a network without initial weights."""
    return SelfPredictiveNetwork(
        network.torso,
        network.head,
        network.value,
        num_actions=info.num_actions,
        precision=decided(spec.learner.precision),
    )


def self_prediction_loss(spec: Spec, td_loss: LossFn) -> LossFn:
    """Make a TD loss with the auxiliary loss of self-prediction."""
    return SelfPredictionLoss(td_loss=td_loss, weight=given(spec.learner.self_prediction_weight))


def predicted_steps(spec: Spec) -> int:
    """Return the number of steps that the network predicts; 0 without self-prediction."""
    return given(spec.learner.self_prediction_steps) if spec.toggles.self_prediction else 0


def longest_horizon(spec: Spec) -> int:
    """Return the largest n of a run."""
    return given(spec.learner.n_step_start) if spec.toggles.annealing else spec.toggles.n_step


def longest_window(spec: Spec) -> int:
    """Return the number of rows that a sample needs after its first: of n-step returns or of predictions."""
    return max(longest_horizon(spec), predicted_steps(spec))


def horizon_of(spec: Spec) -> HorizonSchedule:
    """Make the schedule of n and γ."""
    end = Horizon(n_step=spec.toggles.n_step, gamma=spec.learner.discount)
    if not spec.toggles.annealing:
        return ConstantHorizon(horizon=end)
    start = Horizon(n_step=given(spec.learner.n_step_start), gamma=given(spec.learner.discount_start))
    return AnnealedHorizon(
        start=start,
        end=end,
        decay_updates=given(spec.learner.annealing_updates),
        last_reset=_last_reset(spec) if spec.toggles.resets else lambda _: 0,
    )


def _last_reset(spec: Spec) -> Callable[[int], int]:
    period, last = given(spec.learner.reset_period_updates), given(spec.learner.reset_last_updates)
    return lambda updates: last_reset(updates, period_updates=period, last_updates=last)


def upkeep(
    spec: Spec,
    *,
    online: QNetwork,
    target: QNetwork,
    optimizer: Optimizer,
    fresh: Callable[[int, str], QNetwork],
) -> tuple[Upkeep, ...]:
    """Make the work that is due between updates. `fresh` makes the networks of a reset."""
    if not spec.toggles.resets:
        return ()
    networks = {"online": online} if target is online else {"online": online, "target": target}
    resets = Resets(
        period_updates=given(spec.learner.reset_period_updates),
        last_updates=given(spec.learner.reset_last_updates),
        keep=given(spec.learner.reset_keep),
        perturb=given(spec.learner.reset_perturb),
        networks=networks,
        optimizer=optimizer,
        fresh=fresh,
    )
    return (resets,)


def make_redo(
    spec: Spec,
    learner: Learner,
    *,
    states: Callable[[int], Tensor],
    fresh: Callable[[int], QNetwork],
    report: Callable[[Recycled], None],
) -> ReDo:
    """Make the recycling of dormant units. `states` samples states from a stream of a seed."""
    return ReDo(
        period_updates=given(spec.learner.redo_period_updates),
        threshold=given(spec.learner.redo_threshold),
        online=learner.online,
        optimizer=learner.optimizer,
        frames=lambda updates: states(torch_seed(spec.seed, "redo states", updates)),
        fresh=fresh,
        report=report,
    )
