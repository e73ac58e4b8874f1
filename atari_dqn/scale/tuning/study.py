"""Optuna: suggest the values of a trial, and keep the log of trials. Requires the extra `tune`.

One line of the log begins a trial with all its values, one line follows for each step of its objective, and
one or two end it. Its values are suggested on a copy in memory, by a sampler that is seeded anew from the
seed of the tune and the number of the trial. A command that is killed has written the whole trial or
nothing, and the next command suggests the same.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from atari_dqn.errors import DamagedError, UserError
from atari_dqn.files.atomic import is_file
from atari_dqn.files.failures import writing
from atari_dqn.rng import stream_seed
from atari_dqn.run.directory import is_run
from atari_dqn.scale.tuning.folder import TuneFolder
from atari_dqn.scale.tuning.space import Dimension, Settings
from atari_dqn.scale.tuning.tune import Tune
from atari_dqn.spec.keys import Scalar

if TYPE_CHECKING:
    from optuna import Study
    from optuna.storages import JournalStorage
    from optuna.trial import FrozenTrial
    from optuna.trial import Trial as Suggesting

State = Literal["running", "complete", "pruned", "failed"]
IMPORTANCE = "PED-ANOVA of the better half of complete trials"
"""The evaluator of importances: Watanabe et al. (2023), as Optuna has it."""
_FEWEST_FOR_IMPORTANCE = 4
_REASON = "reason"


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A trial, as the log has it."""

    number: int
    settings: Settings
    state: State
    value: float
    """The objective of a complete trial, else NaN."""
    steps: Mapping[int, float]
    """The objective so far, by the index of the step."""
    reason: str = ""
    """Why it failed or was pruned."""


def require_extra() -> None:
    """Raise `UserError` if the extra is not installed."""
    try:
        import matplotlib  # noqa: F401
        import optuna  # noqa: F401
    except ImportError:
        raise UserError(
            "dqn tune needs Optuna and matplotlib; install them with `pip install 'atari-dqn[tune]'`"
        ) from None


class TrialLog:
    """The trials of a tune. A log that is not `writable` may be written by another command meanwhile.

    `DamagedError` if it is no log of the tune's trials, or is missing although runs have begun.
    """

    def __init__(self, folder: TuneFolder, tune: Tune, *, writable: bool) -> None:
        from optuna import create_study, load_study

        self._tune, self._path = tune, folder.log
        self._study: Study | None = None
        _check_not_lost(folder)
        if writable:
            _cut_incomplete_line(folder)
        elif not is_file(folder.log):
            return
        self._storage = _storage(folder)
        names = [each.study_name for each in self._storage.get_all_studies()]
        if names not in ([], [tune.name]):
            raise DamagedError(f"{folder.log}: holds the trials of {', '.join(names)}, not of {tune.name}")
        if names:
            self._study = load_study(study_name=tune.name, storage=self._storage)
        elif writable:
            with writing(folder.log):
                self._study = create_study(
                    study_name=tune.name, storage=self._storage, direction=tune.objective.direction
                )

    def trials(self) -> list[Trial]:
        """Return all trials in the order of their numbers."""
        return [] if self._study is None else [_trial(each) for each in self._frozen()]

    def suggest(self) -> Trial:
        """Begin the next trial."""
        from optuna.trial import TrialState, create_trial

        copy = _copy(self._tune, self._frozen())
        asked = copy.ask()
        settings: dict[str, Scalar] = {}
        for dimension in self._tune.space:
            if dimension.applies(settings):
                settings[dimension.key] = _suggested(asked, dimension)
        params, distributions = dict(asked.params), dict(asked.distributions)
        begun = create_trial(state=TrialState.RUNNING, params=params, distributions=distributions)
        with writing(self._path):
            self._begun.add_trial(begun)
        return self.trials()[-1]

    def report(self, trial: Trial, step: int, value: float) -> None:
        """Record the objective so far at a step."""
        with writing(self._path):
            self._storage.set_trial_intermediate_value(self._identity(trial), step, value)

    def finish(self, trial: Trial, state: State, value: float = math.nan, reason: str = "") -> None:
        """Record how a trial ended."""
        from optuna.trial import TrialState

        states = {"complete": TrialState.COMPLETE, "pruned": TrialState.PRUNED, "failed": TrialState.FAIL}
        with writing(self._path):
            if reason:
                self._storage.set_trial_user_attr(self._identity(trial), _REASON, reason)
            self._begun.tell(trial.number, value if state == "complete" else None, states[state])

    def importance(self) -> dict[str, float]:
        """Return the importance of each key, the sum of which is 1; empty if there are too few trials."""
        from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

        complete = [each.value for each in self.trials() if each.state == "complete"]
        if self._study is None or len(complete) < _FEWEST_FOR_IMPORTANCE or len(set(complete)) == 1:
            return {}
        return get_param_importances(
            self._study, evaluator=PedAnovaImportanceEvaluator(target_quantile=0.5, region_quantile=1.0)
        )

    @property
    def _begun(self) -> Study:
        assert self._study is not None, "a log that is written to is opened as writable"
        return self._study

    def _identity(self, trial: Trial) -> int:
        """Return the number by which the storage knows a trial."""
        study = self._storage.get_study_id_from_name(self._tune.name)
        return self._storage.get_trial_id_from_study_id_trial_number(study, trial.number)

    def _frozen(self) -> list[FrozenTrial]:
        return [] if self._study is None else self._study.get_trials(deepcopy=False)


def _check_not_lost(folder: TuneFolder) -> None:
    """Raise `DamagedError` if runs have begun, each of which was in the log before, and it has no line."""
    has_lines = is_file(folder.log) and folder.log.stat().st_size > 0
    if not has_lines and any(map(is_run, folder.runs.path.glob("trial*"))):
        raise DamagedError(
            f"{folder.log}: is missing or empty, although trials have begun; restore it, or begin the tune "
            "again in another folder (--folder)"
        )


class _HeldLock:
    """A lock of Optuna's log that is never waited for: the command holds the lock of the folder."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


def _storage(folder: TuneFolder) -> JournalStorage:
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    lock: Any = _HeldLock()
    try:
        return JournalStorage(JournalFileBackend(str(folder.log), lock_obj=lock))
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise DamagedError(f"{folder.log}: is not a log of trials: {error}") from error


def _cut_incomplete_line(folder: TuneFolder) -> None:
    """Remove the end of a line that a killed command did not complete."""
    if not is_file(folder.log):
        return
    with writing(folder.log):
        data = folder.log.read_bytes()
        complete = data.rfind(b"\n") + 1
        if complete < len(data):
            os.truncate(folder.log, complete)


def _copy(tune: Tune, trials: list[FrozenTrial]) -> Study:
    """Return a copy of the study in memory, with the sampler of the next trial."""
    import optuna

    sampler = optuna.samplers.TPESampler(
        n_startup_trials=tune.sampler.random_trials,
        seed=stream_seed(tune.sampler.seed, "tune", len(trials)) % 2**32,
    )
    study = optuna.create_study(direction=tune.objective.direction, sampler=sampler)
    study.add_trials(trials)
    return study


def _suggested(trial: Suggesting, dimension: Dimension) -> Scalar:
    key, low, high, is_log = dimension.key, dimension.low, dimension.high, dimension.kind == "log"
    if dimension.kind == "choice":
        choice = trial.suggest_categorical(key, dimension.choices)
        assert choice is not None, "no choice of a key is None"
        return choice
    if dimension.is_integer:
        return trial.suggest_int(key, int(low), int(high), log=is_log)
    return trial.suggest_float(key, low, high, log=is_log)


def _trial(frozen: FrozenTrial) -> Trial:
    from optuna.trial import TrialState

    states: dict[TrialState, State] = {
        TrialState.RUNNING: "running",
        TrialState.COMPLETE: "complete",
        TrialState.PRUNED: "pruned",
        TrialState.FAIL: "failed",
    }
    state = states[frozen.state]
    return Trial(
        number=frozen.number,
        settings=frozen.params,
        state=state,
        value=frozen.values[0] if state == "complete" else math.nan,
        steps=frozen.intermediate_values,
        reason=str(frozen.user_attrs.get(_REASON, "")),
    )


def with_first_equal(trials: list[Trial]) -> Iterator[tuple[Trial, int]]:
    """Yield each trial with the number of the first one that has the same values, whose runs it shares."""
    first: dict[frozenset[tuple[str, Scalar]], int] = {}
    for trial in trials:
        yield trial, first.setdefault(_values_of(trial), trial.number)


def first_complete(trials: Sequence[Trial]) -> list[Trial]:
    """Return the first complete trial of each set of values; later ones have the scores of the same runs."""
    found: dict[frozenset[tuple[str, Scalar]], Trial] = {}
    for trial in trials:
        if trial.state == "complete":
            found.setdefault(_values_of(trial), trial)
    return list(found.values())


def _values_of(trial: Trial) -> frozenset[tuple[str, Scalar]]:
    return frozenset(trial.settings.items())
