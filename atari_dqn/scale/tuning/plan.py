"""Plan a tune: its objective, its space, and what the runs of a trial need of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from atari_dqn.errors import UserError
from atari_dqn.formatting import plural, size
from atari_dqn.machine.hardware import Hardware
from atari_dqn.run.sweep.record import Member
from atari_dqn.run.threads import check_threads
from atari_dqn.scale.room import Need, Needs, Room
from atari_dqn.scale.tuning.combinations import extreme_settings
from atari_dqn.scale.tuning.folder import TuneRecord
from atari_dqn.scale.tuning.scores import objective_text
from atari_dqn.scale.tuning.trials import members_of


def check_one_fits(record: TuneRecord, hardware: Hardware, devices: Sequence[str]) -> None:
    """Raise `UserError` if this machine cannot hold the run with the most memory, of those of `_trials`."""
    check_threads("threads", record.tune.threads, hardware.cores_usable)
    needs, room = Needs(hardware, record.tune.threads), Room(hardware, devices)
    member = _trials(record, needs, devices[0])[-1][0]
    by_device = needs.by_device(member, room.devices)
    if room.place(member.name, by_device, threads=record.tune.threads) is None:
        lacking = " and ".join(room.lacking(member.name, by_device))
        raise UserError(
            f"a run of {record.tune.name} does not fit: this machine has too little {lacking}; see --plan"
        )


def _trials(record: TuneRecord, needs: Needs, device: str) -> list[list[Member]]:
    """Return the runs of combinations of choices and ends of ranges, the least memory first."""
    settings = enumerate(extreme_settings(record.tune.space))
    trials = [members_of(record, number, each) for number, each in settings]
    return sorted(trials, key=lambda members: _size(needs.of(members[0], device)))


def _size(need: Need) -> tuple[int, int, int]:
    return need.ram + need.vram, need.disk, need.cores


def plan_lines(
    record: TuneRecord, hardware: Hardware, devices: Sequence[str], *, jobs: int | None = None
) -> Iterator[str]:
    """Yield the lines of a plan for at most `jobs` runs at once.

    The needs are those of the combination of values with the most memory. `UserError` for more threads than
    cores.
    """
    tune = record.tune
    check_threads("threads", tune.threads, hardware.cores_usable)
    yield objective_text(tune.objective, len(tune.seeds), tune.games)
    yield from (f"  {dimension}" for dimension in tune.space)
    needs, room = Needs(hardware, tune.threads), Room(hardware, devices)
    trials = _trials(record, needs, devices[0])
    members = trials[-1]
    least, need = (needs.of(trial[0], devices[0]) for trial in (trials[0], members))
    frames = tune.objective.at_frames
    budget = tune.budget.trials
    most = "" if budget is None else f"; {plural(budget * len(members), 'run')} at most"
    runs = plural(len(members), "run")
    yield f"a trial: {runs} of {frames:,} frames, {len(members) * frames:,} in all{most}"
    vram = f", {size(need.vram)} VRAM" if need.vram else ""
    run = "a run" if _size(least) == _size(need) else "the largest run"
    yield f"{run}: {plural(need.cores, 'core')}, {size(need.ram)} RAM{vram}, {size(need.disk)} disk"
    for member in (members * tune.sampler.trials_at_once)[:jobs]:
        room.place(f"{len(room)}", needs.by_device(member, room.devices), threads=1)
    fitting, trials_at_once = plural(len(room), "run"), plural(tune.sampler.trials_at_once, "trial")
    yield f"at once here: {fitting} of {trials_at_once}, on {plural(hardware.cores_usable, 'core')}"
