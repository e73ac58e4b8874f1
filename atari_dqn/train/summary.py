"""The summary of a finished run: what it holds, its digest, and its text."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from atari_dqn.files.seal import sealed
from atari_dqn.spec.loader import ResolvedSpec
from atari_dqn.spec.protocol import Protocol
from atari_dqn.spec.schema import Spec
from atari_dqn.train.session import Session
from atari_dqn.train.training_evaluations import session_protocol

_SEAL = "summary_sha256"


def sealed_summary(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Add the digest of a summary to it, so that damage is detected."""
    return sealed(summary, _SEAL)


def summary_of(session: Session, resolved: ResolvedSpec, digest: str) -> dict[str, Any]:
    """Build the summary of a finished run with its last score and its best, which is a maximum."""
    clock = session.training.clock
    last_step, last = session.evaluations.scores[-1]
    best_step, best = max(session.evaluations.scores, key=lambda scored: scored[1].mean_return)
    protocol = _protocol(session, resolved.spec, "final", last_step)
    best_protocol = _protocol(session, resolved.spec, "best", best_step)
    return {
        "name": resolved.name,
        "track": resolved.track_label,
        "game": resolved.spec.game,
        "seed": resolved.spec.seed,
        "step": clock.steps,
        "env_frames": clock.env_frames,
        "updates": clock.updates,
        "elapsed_seconds": session.elapsed_seconds,
        "score": str(last),
        "last": {"step": last_step, **last.row(), "protocol_digest": protocol.digest()},
        "best": {
            "step": best_step,
            "of_evaluations": len(session.evaluations.scores),
            **best.row(),
            "protocol_digest": best_protocol.digest(),
        },
        "protocol": asdict(protocol),
        "protocol_digest": protocol.digest(),
        "state_digest": digest,
    }


def _protocol(session: Session, spec: Spec, kind: str, step: int) -> Protocol:
    """Return the protocol of the score at a step, which a run may have reached with another emulator."""
    now = session_protocol(spec, kind, session.training.envs.info.rom_md5)
    return replace(now, ale_version=session.evaluations.ale_versions.get(step, now.ale_version))


def result_text(path: Path, summary: Mapping[str, Any]) -> str:
    """Format the summary of a finished run in three lines."""
    return (
        f"{summary['env_frames']:,} frames, track {summary['track']}, {path}\n"
        f"final evaluation: {summary['score']}, protocol {summary['protocol_digest']}\n"
        f"play it again:    dqn eval {shlex.quote(str(path))}"
    )
