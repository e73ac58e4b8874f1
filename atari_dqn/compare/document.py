"""Export a comparison as plain data: a document for JSON, a table with a row for each group for CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from math import isnan
from typing import Any

from atari_dqn.compare.aggregate import Aggregate, Improvement, SharedGames
from atari_dqn.compare.atari100k_scores import Atari100kScore
from atari_dqn.compare.comparison import Comparison, GroupResult
from atari_dqn.compare.contrast import Contrast
from atari_dqn.compare.group import Method
from atari_dqn.compare.group_score import GroupScore
from atari_dqn.compare.reference.atari100k import COLUMNS, Column
from atari_dqn.compare.references import ComparedReference
from atari_dqn.compare.statistics import CONFIDENCE, RESAMPLES, SEED, Estimate
from atari_dqn.formatting import printable, setting

_ESTIMATES = ("mean", "median", "iqm")


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    """Convert a comparison to plain data that `json.dumps` accepts."""
    return {
        "at_frames": comparison.at_frames,
        "intervals": {
            "confidence": CONFIDENCE,
            "resamples": RESAMPLES,
            "seed": SEED,
            "kind": "percentile",
            "of_increments": "Welch",
        },
        "human_table": comparison.human_table,
        "humans": {game: asdict(human) for game, human in comparison.humans.items()},
        "groups": [_group(result) for result in comparison.results],
        "normalised_over": _shared(comparison.normalised_over),
        "aggregates": [_aggregate(each) for each in comparison.aggregates],
        "improved_over": _shared(comparison.improved_over),
        "improvements": [_improvement(each) for each in comparison.improvements],
        "protocols": {
            digest: {**asdict(protocol), "short": protocol.short()}
            for digest, protocol in comparison.protocols.items()
        },
        "warnings": comparison.warnings,
        "left_out": [
            {"path": printable(str(each.path)), "reason": printable(str(each.error))}
            for each in comparison.left_out
        ],
    }


def comparison_csv(comparison: Comparison) -> str:
    """Format a comparison as CSV with a row for each group; a cell without a value is empty."""
    rows = [_row(result) for result in comparison.results]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _group(result: GroupResult) -> dict[str, Any]:
    group = result.group
    return {
        "game": group.game,
        **_method(group.method),
        "deviations": group.deviations,
        "runs": [
            {"seed": run.seed, "path": printable(str(run.path)), "reached_frames": run.reached_frames}
            for run in group.runs
        ],
        "contrast": _contrast(result.contrast),
        "last": _score(result.last),
        "best": _score(result.best),
        "to_score": None if result.time_to_score is None else asdict(result.time_to_score),
        "references": [_reference(each) for each in result.references],
        "atari_100k": [_published(each) for each in result.atari100k],
    }


def _method(method: Method) -> dict[str, str]:
    return {"label": method.label, "track": method.track_label, "agent": method.agent}


def _score(scored: GroupScore) -> dict[str, Any]:
    return {
        "n": scored.n,
        "evaluations": {seed: asdict(each) for seed, each in scored.evaluations.items()},
        "absent": scored.absent,
        **{name: _estimate(scored.estimates.get(name)) for name in _ESTIMATES},
        "quartiles": scored.quartiles,
        "frame_caps": scored.frame_caps,
        "comparable": scored.comparable,
        "protocols": scored.protocol_digests,
    }


def _contrast(contrast: Contrast | None) -> dict[str, Any] | None:
    if contrast is None:
        return None
    return {
        "to": contrast.to.label,
        "finding": contrast.finding,
        "increment": _estimate(contrast.increment),
        "differences": contrast.differences,
    }


def _shared(shared: SharedGames) -> dict[str, Any]:
    left_out = {method.label: reason for method, reason in shared.left_out.items()}
    return {"games": shared.games, "left_out": left_out}


def _estimate(estimate: Estimate | None) -> dict[str, Any] | None:
    return None if estimate is None else asdict(estimate)


def _reference(each: ComparedReference) -> dict[str, Any]:
    reference = each.reference
    study = {
        name: getattr(reference.study, name)
        for name in ("name", "title", "source", "commit", "licence", "notes")
    }
    figures = {
        name: getattr(reference, name)
        for name in ("agent", "env_frames", "mean", "lowest", "highest", "n", "between_frames", "differences")
    }
    return {
        "study": study,
        **figures,
        "measure": each.measure,
        "score": each.score,
        "score_window_frames": each.window,
        "verdict": each.verdict or None,
    }


def _published(each: Atari100kScore) -> dict[str, Any]:
    return {
        "agent": each.column.agent,
        "title": each.column.title,
        "sourced": each.column.sourced,
        "score": each.figure.mean,
        "runs": each.figure.n,
        "human_normalised": each.normalised,
        "in_our_interval": each.inside,
    }


def _aggregate(each: Aggregate) -> dict[str, Any]:
    estimates = {name: _estimate(estimate) for name, estimate in each.estimates.items()}
    return {**_method(each.method), "games": each.games, "n": each.n, **estimates, "notes": each.notes}


def _improvement(each: Improvement) -> dict[str, Any]:
    return {
        "label": each.method.label,
        "over": each.over.label,
        "games": each.games,
        "probability": _estimate(each.probability),
    }


def _row(result: GroupResult) -> dict[str, Any]:
    group, last, best, time = result.group, result.last, result.best, result.time_to_score
    row: dict[str, Any] = {"game": group.game, **_method(group.method), "n": last.n}
    row["env_frames"] = last.env_frames if last.n else ""
    for name in _ESTIMATES:
        row |= _flat(name, last.estimates.get(name))
    row["quartile_1"], row["quartile_3"] = last.quartiles or ("", "")
    row |= _flat("best_mean", best.estimates.get("mean"))
    row["frame_caps"], row["comparable"] = last.frame_caps, setting(last.comparable)
    row["contrast"] = "" if result.contrast is None else result.contrast.statement
    row["to_score"] = "" if time is None else time.score
    row["reached"] = "" if time is None else time.reached
    row["median_frames_to_score"] = "" if time is None else time.median_frames
    row["median_hours_to_score"] = "" if time is None or isnan(time.median_hours) else time.median_hours
    row["protocols"] = " ".join(last.protocol_digests)
    scores = {each.column.agent: each.figure.mean for each in result.atari100k}
    return row | {f"atari_100k_{_column_name(column)}": scores.get(column.agent, "") for column in COLUMNS}


def _column_name(column: Column) -> str:
    return f"{column.agent}_recalled" if column.sourced == "recalled" else column.agent


def _flat(name: str, estimate: Estimate | None) -> dict[str, Any]:
    interval = estimate.interval if estimate else None
    return {
        name: estimate.value if estimate else "",
        f"{name}_low": interval.low if interval else "",
        f"{name}_high": interval.high if interval else "",
    }
