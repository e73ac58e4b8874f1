"""Train the trials of a tune, show them meanwhile, and print the outcome."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

from atari_dqn.envs.processes import interrupts_blocked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from atari_dqn.cli.workers import MakeWorkers
    from atari_dqn.machine.hardware import Hardware
    from atari_dqn.scale.on_ray.cluster import Cluster, Node
    from atari_dqn.scale.tuning.opening import OpenedTune


def train_here(
    opened: OpenedTune, hardware: Hardware, devices: Sequence[str], *, jobs: int | None, plain: bool
) -> None:
    """Train the trials that are left on this machine."""
    from atari_dqn.cli.workers import local_workers

    threads = opened.record.tune.threads
    workers = local_workers(opened.folder.runs, hardware, devices, threads=threads, jobs=jobs)
    _train(opened, workers, plain=plain)


def train_on_ray(
    opened: OpenedTune,
    cluster: Cluster,
    nodes: Sequence[Node],
    *,
    address: str | None,
    device: str,
    jobs: int | None,
    plain: bool,
) -> None:
    """Train the trials that are left on the nodes; a run whose command has ended stops by itself."""
    from atari_dqn.cli.workers import continuing, on_ray_options, ray_workers

    options = on_ray_options(address)
    with ray_workers(
        opened.folder.runs,
        cluster,
        nodes,
        device=opened.record.device if device == "auto" else device,
        threads=opened.record.tune.threads,
        jobs=jobs,
        continue_command=continuing("tune", opened.folder.path, options),
    ) as workers:
        _train(opened, workers, plain=plain, options=options)


def _train(opened: OpenedTune, make_workers: MakeWorkers, *, plain: bool, options: str = "") -> None:
    """Run trials until the budget is used up. `options`: of the command that continues, which is printed."""
    with interrupts_blocked():
        from atari_dqn.cli.tune_outcome import conclude
        from atari_dqn.scale.tuning.folder import Stopwatch
        from atari_dqn.scale.tuning.progress import TuneProgress
        from atari_dqn.scale.tuning.ranking import read_standing
        from atari_dqn.scale.tuning.study import TrialLog
        from atari_dqn.scale.tuning.tuner import Tuner
        from atari_dqn.train.interrupt import SignalGuard
        from atari_dqn.view.text_view import text_view

    folder, record, reports = opened.folder, opened.record, list[str]()
    log = TrialLog(folder, record.tune, writable=True)
    with SignalGuard() as guard:
        workers = make_workers(reports.append)
        progress = TuneProgress(
            lambda: read_standing(record, folder, log), lambda: workers.running, folder.runs
        )
        with closing(text_view(progress.screen, progress.news, sys.stdout, plain=plain)) as view:

            def show() -> None:
                while reports:
                    view.report(reports.pop(0))
                view.show()

            tuner = Tuner(
                record=record,
                folder=folder,
                log=log,
                workers=workers,
                stopwatch=Stopwatch(folder),
                is_interrupted=lambda: guard.received is not None,
                show=show,
            )
            result = tuner.run()
    conclude(record, folder, log, result, guard.received, options)
