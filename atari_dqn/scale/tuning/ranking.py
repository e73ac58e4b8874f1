"""Rank the trials of a tune, and describe the protocol of their scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from atari_dqn.errors import DamagedError
from atari_dqn.formatting import printable
from atari_dqn.run.directory import RunDirectory
from atari_dqn.run.recorded_protocols import recorded_protocols
from atari_dqn.scale.tuning.folder import TuneFolder, TuneRecord, worked_seconds
from atari_dqn.scale.tuning.study import Trial, TrialLog, first_complete, with_first_equal
from atari_dqn.scale.tuning.trials import TrialRuns, members_of


@dataclass(frozen=True, kw_only=True)
class Standing:
    """The trials of a tune, the best first."""

    record: TuneRecord
    trials: tuple[Trial, ...]
    """In the order of their numbers."""
    ranked: tuple[Trial, ...]
    """The first complete one of each set of values, the best first; of equal scores the earlier."""
    first: tuple[int, ...]
    """For each trial the number of the first one with the same values, whose runs it shares."""
    seconds: float
    """For how long `dqn tune` has worked."""

    @cached_property
    def ranks(self) -> Mapping[int, int]:
        """The rank of each trial in `ranked`, by its number."""
        return {trial.number: rank for rank, trial in enumerate(self.ranked, start=1)}


def read_standing(record: TuneRecord, folder: TuneFolder, log: TrialLog) -> Standing:
    """Read the present standing of a tune."""
    trials = log.trials()
    sign = -1 if record.tune.objective.direction == "maximize" else 1
    return Standing(
        record=record,
        trials=tuple(trials),
        ranked=tuple(sorted(first_complete(trials), key=lambda trial: (sign * trial.value, trial.number))),
        first=tuple(number for _, number in with_first_equal(trials)),
        seconds=worked_seconds(folder),
    )


def protocol_lines(standing: Standing, folder: TuneFolder) -> list[str]:
    """Return the protocols of the evaluations that rate the best trial; one, or one for each game."""
    if not standing.ranked:
        return []
    best = standing.ranked[0]
    members = members_of(standing.record, standing.first[best.number], best.settings)
    runs = TrialRuns(standing.record, folder.runs, members)
    runs.refresh()
    lines = (_protocol(folder.runs.run(name), digest) for name, digest in runs.protocol_digests.items())
    return list(dict.fromkeys(lines))


def _protocol(run: RunDirectory, digest: str) -> str:
    """Describe the protocol with a fingerprint, or why it is unknown: the scores are shown nevertheless."""
    try:
        protocols = recorded_protocols(run, [digest])
    except DamagedError as error:
        return printable(f"unknown: {error}")
    if digest not in protocols:
        return printable(f"unknown: {run.path} recorded none with the fingerprint {digest}")
    return protocols[digest].short()
