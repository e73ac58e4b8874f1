"""Open the folder of a tune: plan what it would record, or begin it, or go on with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from atari_dqn.machine.automatic import Choice
from atari_dqn.machine.hardware import Hardware
from atari_dqn.scale.auto_values import machine_share
from atari_dqn.scale.axes import threads_problem
from atari_dqn.scale.tuning.auto_choices import auto_choices
from atari_dqn.scale.tuning.combinations import complete, extreme_settings
from atari_dqn.scale.tuning.folder import TuneFolder, TuneRecord, recorded
from atari_dqn.scale.tuning.tune import Tune
from atari_dqn.spec.errors import Fault, SpecError


@dataclass(frozen=True, kw_only=True)
class OpenedTune:
    """A tune and its folder, in which nothing has been written."""

    folder: TuneFolder
    record: TuneRecord
    choices: tuple[Choice, ...] = ()
    """The `auto` keys that were resolved now."""


def plan_tune(tune: Tune, path: Path, *, device: str, hardware: Hardware) -> OpenedTune:
    """Return the record that a tune has or would have in a folder, without writing anything.

    `device`: `cpu` or `cuda`. `UserError` if the folder belongs to something else. `SpecError` if the base
    spec of a tune that begins has another number of threads than the tune.
    """
    folder = TuneFolder(path)
    record = recorded(tune, folder, device)
    if record is not None:
        return OpenedTune(folder=folder, record=record)
    base = {**tune.base, "game": tune.games[0], "seed": tune.seeds[0]}
    first = next(extreme_settings(tune.space))  # without it the track's values could contradict the base
    problem = threads_problem(complete(tune.name, base, first), tune.threads)
    if problem is not None:
        raise SpecError([Fault(tune.name, "learner.threads", problem)])
    machine = machine_share(threads=tune.threads, device=device, hardware=hardware)
    choices = auto_choices(tune, machine)
    auto = {choice.key: choice.value for choice in choices}
    return OpenedTune(folder=folder, record=TuneRecord(tune=tune, device=device, auto=auto), choices=choices)
