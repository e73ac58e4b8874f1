"""R2D2's network and its update in calls of PyTorch alone, for a comparison with this package's.

The network has the names of nothing but itself: `load_from` copies the weights of ours.
"""

from __future__ import annotations

from atari_dqn.minibatch import SequenceBatch
from atari_dqn.spec.constraints import given
from atari_dqn.spec.schema import Spec

import torch
from torch import Tensor, nn
from torch.nn import functional as F

EPSILON = 1e-3
_NAMES = {"torso.convolutions": "convolutions", "memory.layer": "lstm", "hidden.0": "hidden", "head.": ""}


class PlainR2D2(nn.Module):
    """Convolutions, an LSTM of frames, last rewards and last actions, and a dueling head."""

    def __init__(self, *, stack: int, units: int, hidden: int, actions: int) -> None:
        super().__init__()
        self.stack, self.actions = stack, actions
        self.convolutions = nn.ModuleList(
            [nn.Conv2d(stack, 32, 8, 4), nn.Conv2d(32, 64, 4, 2), nn.Conv2d(64, 64, 3, 1)]
        )
        self.lstm = nn.LSTM(64 * 7 * 7 + 1 + actions, units, batch_first=True)
        self.hidden = nn.Linear(units, 2 * hidden)
        self.value, self.advantage = nn.Linear(hidden, 1), nn.Linear(hidden, actions)

    def load_from(self, network: nn.Module) -> None:
        """Copy the weights of this package's network."""
        weights = network.state_dict()
        for theirs, own in _NAMES.items():
            weights = {name.replace(theirs, own): value for name, value in weights.items()}
        self.load_state_dict(weights)

    def forward(
        self, frames: Tensor, last_action: Tensor, last_reward: Tensor, state: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Compute the q-values of consecutive steps, and the state after them."""
        x = frames.unfold(1, self.stack, 1).movedim(-1, 2).flatten(0, 1)
        x = x.contiguous(memory_format=torch.channels_last) / 255.0
        for convolution in self.convolutions:
            x = F.relu(convolution(x))
        encoded = x.flatten(1).view(*last_action.shape, -1)
        one_hot = F.one_hot(last_action + 1, self.actions + 1)[..., 1:].float()
        inputs = torch.cat([encoded, last_reward[..., None], one_hot], dim=2)
        h, c = state.chunk(2, dim=1)
        outputs, (h, c) = self.lstm(inputs, (h[None].contiguous(), c[None].contiguous()))
        value, advantage = F.relu(self.hidden(outputs)).chunk(2, dim=2)
        a = self.advantage(advantage)
        return a + self.value(value) - a.mean(dim=2, keepdim=True), torch.cat([h[0], c[0]], dim=1)


class PlainUpdates:
    """Updates of `PlainR2D2` on minibatches of sequences: burn-in, loss, clipped gradient, Adam."""

    def __init__(self, spec: Spec, actions: int, network: nn.Module) -> None:
        keys = {
            "stack": spec.env.stack_frames,
            "units": given(spec.network.memory_units),
            "hidden": spec.network.hidden_units,
            "actions": actions,
        }
        self.online, self.target = PlainR2D2(**keys), PlainR2D2(**keys)
        self.online.load_from(network)
        self.target.load_from(network)
        self.target.requires_grad_(False)
        self.max_grad_norm, self.mix = spec.learner.max_grad_norm, given(spec.replay.priority_mix)
        self.optimizer = torch.optim.Adam(
            self.online.parameters(), lr=spec.optimizer.learning_rate, eps=given(spec.optimizer.epsilon)
        )

    def update(self, batch: SequenceBatch) -> tuple[Tensor, Tensor]:
        """Take a gradient step; return the loss and the priorities."""
        td_error = self._td_error(batch)
        steps = batch.mask.sum(dim=1)
        loss = (batch.weight * (0.5 * td_error.square()).masked_fill(~batch.mask, 0.0).sum(dim=1)).mean()
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), self.max_grad_norm)
        self.optimizer.step()
        error = td_error.detach().abs().masked_fill(~batch.mask, 0.0)
        return loss.detach(), self.mix * error.amax(dim=1) + (1 - self.mix) * error.sum(dim=1) / steps

    def _td_error(self, batch: SequenceBatch) -> Tensor:
        q = unrolled(self.online, batch)
        with torch.no_grad():
            v = unrolled(self.target, batch).gather(2, q.argmax(dim=2, keepdim=True)).squeeze(2)
            y = batch.r_t + batch.discount_t * unrescaled(v).gather(1, batch.end_t)
        return rescaled(y) - q[:, :-1].gather(2, batch.a_tm1[..., None]).squeeze(2)


def unrolled(network: PlainR2D2, batch: SequenceBatch) -> Tensor:
    """Compute the q-values after the burn-in."""
    burn_in, more = batch.last_action.shape[1] - batch.mask.shape[1] - 1, network.stack - 1
    with torch.no_grad():
        _, state = network(
            batch.frames[:, : burn_in + more], batch.last_action[:, :burn_in],
            batch.last_reward[:, :burn_in], batch.state,
        )  # fmt: skip
    state = state.masked_fill(batch.is_first[:, None], 0.0)
    q, _ = network(
        batch.frames[:, burn_in:], batch.last_action[:, burn_in:], batch.last_reward[:, burn_in:], state
    )
    return q


def rescaled(x: Tensor) -> Tensor:
    """Compute h(x)."""
    return x.sign() * ((x.abs() + 1).sqrt() - 1) + EPSILON * x


def unrescaled(y: Tensor) -> Tensor:
    """Compute the inverse of h as it is printed."""
    root = (1 + 4 * EPSILON * (y.abs() + 1 + EPSILON)).sqrt()
    return y.sign() * (((root - 1) / (2 * EPSILON)).square() - 1)
