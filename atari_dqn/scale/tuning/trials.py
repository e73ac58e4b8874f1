"""The runs of a trial, and its objective so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from atari_dqn.run.sweep.folder import SweepFolder
from atari_dqn.run.sweep.mismatch import mismatch
from atari_dqn.run.sweep.record import Member
from atari_dqn.scale.tuning.combinations import complete
from atari_dqn.scale.tuning.evaluations import FullEvaluations
from atari_dqn.scale.tuning.folder import TuneRecord
from atari_dqn.scale.tuning.pruning import Step
from atari_dqn.scale.tuning.scores import SCORES, statistic_of
from atari_dqn.scale.tuning.space import Settings
from atari_dqn.spec.errors import Fault, SpecError
from atari_dqn.spec.iteration import iteration_frames
from atari_dqn.spec.keys import Scalar, unresolved


def trial_values(record: TuneRecord, settings: Settings) -> dict[str, Scalar]:
    """Return the complete spec of a trial on the first game and seed; `SpecError` if it is not valid."""
    tune = record.tune
    base = {**tune.base, "game": tune.games[0], "seed": tune.seeds[0]}
    values = complete(tune.name, base, settings)
    auto = unresolved(values)
    if missing := sorted(set(auto) - record.auto.keys()):  # searched as auto, which tune files once could be
        problem = "found auto, for which the folder of the tune has no value"
        raise SpecError([Fault(tune.name, key, problem) for key in missing])
    return complete(tune.name, base, {**settings, **{key: record.auto[key] for key in auto}})


def members_of(record: TuneRecord, number: int, settings: Settings) -> list[Member]:
    """Return the runs of a trial, each seed for all games before the next seed; `SpecError` if not valid."""
    values = trial_values(record, settings)
    label = f"trial{number:04}"
    return [
        Member.of(label, {**values, "game": game, "seed": seed})
        for seed in record.tune.seeds
        for game in record.tune.games
    ]


@dataclass(frozen=True)
class _Run:
    member: Member
    evaluations: FullEvaluations
    is_other: bool
    """Whether its directory holds another run, which the runner refuses."""

    @property
    def iteration_frames(self) -> int:
        return iteration_frames(self.member.values)


class TrialRuns:
    """The runs of a trial that has begun. `refresh` reads their evaluations."""

    def __init__(self, record: TuneRecord, folder: SweepFolder, members: list[Member]) -> None:
        self._tune, self._folder = record.tune, folder
        self._runs = [
            _Run(
                member,
                FullEvaluations(folder.path / member.name),
                is_other=mismatch(folder.run(member.name), member) is not None,
            )
            for member in members
        ]
        self._halted: dict[str, str] = {}

    def refresh(self) -> None:
        """Read the evaluations that are new."""
        for run in self._runs:
            run.evaluations.refresh()

    def halt(self, name: str, reason: str) -> None:
        """Note that a failure gate has halted a run, if it is one of these."""
        if any(run.member.name == name for run in self._runs):
            self._halted[name] = reason

    def halted_before(self, step: Step) -> str | None:
        """Return why a run has halted without the evaluation that a step needs; None if none has."""
        for run in self._needed(step):
            if run.member.name in self._halted and self._score(run, step.at_frames) is None:
                return f"{run.member.name}: {self._halted[run.member.name]}"
        return None

    def _needed(self, step: Step) -> list[_Run]:
        return self._runs[: step.seeds * len(self._tune.games)]

    def objective(self, step: Step) -> float | None:
        """Compute the objective at a step; None if an evaluation is missing, NaN if one is not a number."""
        games = len(self._tune.games)
        scores = [self._score(run, step.at_frames) for run in self._needed(step)]
        known = [score for score in scores if score is not None]
        if len(known) < len(scores):
            return None
        by_seed = [known[place : place + games] for place in range(0, len(known), games)]
        return statistic_of(self._tune.objective.statistic, by_seed)

    def unfinished(self) -> Iterator[Member]:
        """Yield the members that have to run."""
        for run in self._runs:
            if run.member.name not in self._halted and self._is_unfinished(run):
                yield run.member

    def _is_unfinished(self, run: _Run) -> bool:
        return self._score(run, self._tune.objective.at_frames) is None

    def _score(self, run: _Run, at_frames: int) -> float | None:
        """Return the score of a run at a frame; at the end of its budget, once it has finished."""
        row = None if run.is_other else run.evaluations.at(at_frames, run.iteration_frames)
        if row is None or (
            at_frames >= run.member.total_frames and not self._folder.has_finished(run.member.name)
        ):
            return None
        score = SCORES[self._tune.objective.score]
        return score.of(run.member.game, row.columns[score.column])

    @property
    def protocol_digests(self) -> dict[str, str]:
        """The fingerprint of the protocol of each run that has been evaluated for the objective, by name."""
        found = {}
        for run in self._runs:
            row = run.evaluations.at(self._tune.objective.at_frames, run.iteration_frames)
            if row is not None:
                found[run.member.name] = row.protocol_digest
        return found
