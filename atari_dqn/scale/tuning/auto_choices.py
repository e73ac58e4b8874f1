"""Choose the values of a tune's `auto` keys, which are the same in every trial."""

from __future__ import annotations

from atari_dqn.machine.automatic import Choice, Machine
from atari_dqn.scale.auto_values import resolve_variant
from atari_dqn.scale.members import Variant
from atari_dqn.scale.tuning.combinations import combination_faults, complete, extreme_settings
from atari_dqn.scale.tuning.tune import Tune
from atari_dqn.spec.errors import SpecError


def auto_choices(tune: Tune, machine: Machine) -> tuple[Choice, ...]:
    """Choose a value for each `auto` key with which every trial is valid.

    Combinations of searched values may lead to different choices, for example of `system.workers` with and
    without actors. Those of the first combination are taken that all can have; `SpecError` if there is none.
    """
    base = {**tune.base, "game": tune.games[0], "seed": tune.seeds[0]}
    of_combinations = []
    for settings in extreme_settings(tune.space):
        variant = Variant(label=tune.name, values=complete(tune.name, base, settings))
        choices = resolve_variant(variant, {}, machine)[1]
        of_combinations.append({choice.key: choice for choice in choices})
    any_value = {key: choice for choices in reversed(of_combinations) for key, choice in choices.items()}
    candidates = dict.fromkeys(tuple({**any_value, **choices}.values()) for choices in of_combinations)
    refusals = []
    for candidate in candidates:
        auto = {choice.key: choice.value for choice in candidate}
        faults = list(combination_faults(tune.name, {**base, **auto}, tune.space))
        if not faults:
            return candidate
        refusals.append(faults)
    raise SpecError(refusals[0])
