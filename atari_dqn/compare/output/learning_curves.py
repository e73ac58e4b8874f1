"""Compute the learning curves of a comparison, of groups and of published agents."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atari_dqn.compare.comparison import GroupResult
from atari_dqn.compare.group import Group
from atari_dqn.compare.load import Run
from atari_dqn.compare.reference.caps import MARK
from atari_dqn.compare.reference.studies import curves
from atari_dqn.compare.references import ComparedReference
from atari_dqn.compare.statistics import CONFIDENCE, RESAMPLES, SEED

Frames = NDArray[np.int64]
Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class LearningCurve:
    """A curve with a band. i64[T], f64[T] each; the band of a single seed or number is the curve itself."""

    label: str
    frames: Frames
    mean: Values
    low: Values
    high: Values


@dataclass(frozen=True, kw_only=True)
class GroupCurve(LearningCurve):
    """The mean over seeds at frames where every seed was evaluated, with its 95 % interval."""

    seeds: dict[int, tuple[Frames, Values]]
    """Frames and mean returns of each seed."""


@dataclass(frozen=True, kw_only=True)
class PublishedCurve(LearningCurve):
    """A published curve; its band reaches from the lowest to the highest seed."""

    same_protocol: bool


def group_curves(results: Sequence[GroupResult]) -> list[GroupCurve]:
    """Compute the curve of each group. A frame at which a seed has no finite return has no mean."""
    return [_group_curve(result) for result in results]


def published_curves(results: Sequence[GroupResult]) -> list[PublishedCurve]:
    """Return each published curve that groups are compared with, up to the last frame of the groups."""
    last_frames = max((run.reached_frames for result in results for run in result.group.runs), default=0)
    found: dict[str, PublishedCurve] = {}
    for result in results:
        for each in result.references:
            drawn = _published(result, each, last_frames)
            if drawn is not None:
                found.setdefault(drawn.label, drawn)
    return list(found.values())


def _group_curve(result: GroupResult) -> GroupCurve:
    group = result.group
    by_seed = {run.seed: points for run in group.runs if (points := dict(_points(run)))}
    shared = _shared(list(by_seed.values()), group.runs[0].iteration_frames)
    values = np.array(list(shared.values()) or np.empty((0, 1)), np.float64).T
    low, high = _band(values)
    return GroupCurve(
        label=f"{group.method.label} {group.method.track_label}, n = {len(by_seed)}{_cut(group)}",
        frames=np.array(list(shared), np.int64),
        mean=values.mean(axis=0),
        low=low,
        high=high,
        seeds={
            seed: (np.array(list(points), np.int64), np.array(list(points.values()), np.float64))
            for seed, points in by_seed.items()
        },
    )


def _cut(group: Group) -> str:
    """Return the mark for a curve with games that the frame cap truncated, and the caps."""
    evaluations = [each for run in group.runs for each in run.evaluations if each.frame_caps]
    caps = sorted({each.max_episode_frames for each in evaluations if each.max_episode_frames})
    return f" {MARK} games cut at {', '.join(f'{cap:,}' for cap in caps)} frames" if evaluations else ""


def _points(run: Run) -> Iterator[tuple[int, float]]:
    """Yield frames and finite mean return of evaluations; of two at the same frame the later one counts."""
    for evaluation in run.evaluations:
        if np.isfinite(evaluation.mean_return):
            yield evaluation.env_frames, evaluation.mean_return


def _shared(by_seed: Sequence[Mapping[int, float]], iteration_frames: int) -> dict[int, list[float]]:
    """Return the values of the evaluations that every seed has, by the frames of the first seed.

    Evaluations of different seeds count as the same one if they are less than one iteration apart.
    """
    shared = {}
    columns = [list(points) for points in by_seed]
    for frames in by_seed[0] if by_seed else ():
        places = [bisect_left(column, frames + iteration_frames) - 1 for column in columns]
        nearest = [column[place] for column, place in zip(columns, places, strict=True)]
        if all(abs(at - frames) < iteration_frames for at in nearest):
            shared[frames] = [points[at] for points, at in zip(by_seed, nearest, strict=True)]
    return shared


def _band(values: Values) -> tuple[Values, Values]:
    """Compute the bootstrap interval of the mean at each frame. f64[N, T] → f64[T], f64[T]."""
    if len(values) == 1 or not values.size:
        return values.mean(axis=0), values.mean(axis=0)
    drawn = np.random.default_rng(SEED).integers(0, len(values), size=(RESAMPLES, len(values)))
    weights = np.stack([(drawn == row).mean(axis=1) for row in range(len(values))], axis=1)
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(weights @ values, [tail, 100 - tail], axis=0)
    return low, high


def _published(result: GroupResult, each: ComparedReference, last_frames: int) -> PublishedCurve | None:
    reference = each.reference
    points = curves(result.group.game)[reference.study.name, reference.agent]
    if len(points) < 2 or points[0].env_frames > last_frames:
        return None
    every = np.array([point.env_frames for point in points], np.int64)
    frames = np.append(every[every < last_frames], min(last_frames, every[-1]))
    differs = f"; {', '.join(reference.differences)}" if reference.differences else ""
    measure = ", training games" if each.measure == "training" else ""
    return PublishedCurve(
        label=f"{reference.study.title}: {reference.agent}, n = {reference.n}{measure}{differs}",
        same_protocol=not reference.differences,
        frames=frames,
        mean=np.interp(frames, every, [point.mean for point in points]),
        low=np.interp(frames, every, [p.mean if p.lowest is None else p.lowest for p in points]),
        high=np.interp(frames, every, [p.mean if p.highest is None else p.highest for p in points]),
    )
