"""Run the measurements of `dqn bench`, and format them as plain data and as text."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from atari_dqn.assembly.acceleration import Backend, Plain, make_backend
from atari_dqn.assembly.parts import build_learner
from atari_dqn.bench.ceilings import Ceilings, measure_ceilings
from atari_dqn.bench.kernels import Kernels, kernels_of, synchronize
from atari_dqn.formatting import measure, wrapped
from atari_dqn.machine.hardware import Hardware, find_hardware
from atari_dqn.run.provenance import versions
from atari_dqn.spec.constraints import decided
from atari_dqn.spec.schema import Spec
from atari_dqn.train.build import assemble
from atari_dqn.train.learning import Learning
from atari_dqn.train.rate import Rate, small, timed, warm_up

_CEILING_SECONDS = 0.5
PARTS = {
    "act": "choosing actions", "emulate": "waiting for emulators", "store": "frames to the replay",
    "sample": "sampling minibatches", "transfer": "copying them to the device",
    "learn": "targets, loss, gradients", "optimize": "optimizer step", "other": "bookkeeping",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The speed of one spec on one machine, with the ceilings of the machine."""

    spec: str
    device: str
    torch_threads: int
    emulating_processes: int
    captured: bool
    """Whether `rate` was measured with acting and updates in CUDA graphs."""
    compiled: bool
    """Whether acting and updates are compiled; `kernels` are those of the uncompiled update."""
    acceleration: list[str]
    """What computes which part, and why."""
    date: str
    hardware: Hardware
    versions: dict[str, str | None]
    rate: Rate
    split: Rate
    """Time per part; on an asynchronous device measured separately, without graphs and with
    synchronization."""
    kernels: Kernels
    library_kernels: Kernels | None
    """The same operations by PyTorch's libraries; None unless `kernels` are of this project."""
    ceilings: Ceilings

    @property
    def learner_share_of_ceiling(self) -> float | None:
        """The share of convolutions and products in the time of an update, optimizer included.

        None if the update is compiled, because it then has other kernels.
        """
        return self._share_of_update(self.kernels)

    @property
    def learner_share_of_library(self) -> float | None:
        """The time of these operations in PyTorch's libraries over that of an update, which may be shorter.

        None if the libraries compute the update, or if it is compiled.
        """
        return self._share_of_update(self.library_kernels)

    @property
    def emulation_share_of_ceiling(self) -> float | None:
        """Frames per second of busy emulator time, as a share of the ceiling.

        None with actors in other processes, which do not measure that time.
        """
        if self.rate.emulators_busy_share is None:
            return None
        busy_processes = self.rate.emulators_busy_share * self.emulating_processes
        return self.rate.frames_per_second / busy_processes / self.ceilings.emulator_frames_per_second

    def _share_of_update(self, kernels: Kernels | None) -> float | None:
        if self.compiled or kernels is None:
            return None
        seconds = (self.split.shares["learn"] + self.split.shares["optimize"]) / self.split.updates_per_second
        return kernels.seconds / seconds


def bench(spec: Spec, *, name: str, device: torch.device, seconds: float) -> Bench:
    """Measure the training of a spec for `seconds` after a short prefill, then the ceilings."""
    with closing(assemble(small(spec), device)) as training:
        warm_up(training)
        rate, captured = timed(training, seconds), training.captured
        split = rate
        if device.type == "cuda":
            training.use_graphs(False)
            training.stopwatch.synchronize = lambda: synchronize(device)
            split = timed(training, seconds)
        layers = make_backend(device, fuse=False)
        kernels = _kernels(spec, training, layers)
        library_kernels = _kernels(spec, training, Plain()) if kernels.are_ours else None
        processes, acceleration = training.envs.num_processes, training.backend.choices()
    return Bench(
        spec=name,
        device=str(device),
        torch_threads=torch.get_num_threads(),
        emulating_processes=processes,
        captured=captured,
        compiled=decided(spec.learner.compile),
        acceleration=acceleration,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        hardware=find_hardware(Path.cwd()),
        versions=versions(),
        rate=rate,
        split=split,
        kernels=kernels,
        library_kernels=library_kernels,
        ceilings=measure_ceilings(spec, device, seconds=_CEILING_SECONDS),
    )


def _kernels(spec: Spec, training: Learning, backend: Backend) -> Kernels:
    """Time the convolutions and products of an update of the spec's learner by a back end, layer by layer."""
    as_written = replace(spec, learner=replace(spec.learner, compile=False))
    learner = build_learner(as_written, training.envs.info, training.device, backend)
    batch = training.recent.gather()
    assert batch is not None, "updates were timed before"
    return kernels_of(lambda: learner.update(batch), training.device)


def bench_data(result: Bench) -> dict[str, Any]:
    """Convert a result to plain data, including the shares of the ceilings."""
    return {
        **asdict(result),
        "learner_share_of_ceiling": result.learner_share_of_ceiling,
        "learner_share_of_library": result.learner_share_of_library,
        "emulation_share_of_ceiling": result.emulation_share_of_ceiling,
    }


def bench_text(result: Bench) -> str:
    """Format a result as text with lines of at most 80 columns."""
    by = [
        "what computes it",
        *(wrapped(choice, first_indent="  ", indent="    ") for choice in result.acceleration),
    ]
    return "\n".join([*_speed(result), "", *_split(result), "", *by, "", *_hardware_lines(result)])


def _speed(result: Bench) -> list[str]:
    rate = result.rate
    return [
        f"{result.spec}, {rate.seconds:.0f} s of training after the prefill",
        f"{result.device}, torch threads: {result.torch_threads}, emulating processes: "
        f"{result.emulating_processes}, CUDA graphs: {'on' if result.captured else 'off'}",
        "",
        f"  {rate.frames_per_second:>10,.0f}  emulator frames/s",
        f"  {rate.updates_per_second:>10,.1f}  updates/s",
        f"  {rate.samples_per_second:>10,.0f}  samples/s",
    ]


def _split(result: Bench) -> list[str]:
    shares = result.split.shares
    lines = [f"  {shares[part]:>6.1%}  {part:<9} {meaning}" for part, meaning in PARTS.items()]
    busy = result.rate.emulators_busy_share
    return ["where the time goes", *lines, *(() if busy is None else (f"  {busy:>6.1%}  emulators busy",))]


def _hardware_lines(result: Bench) -> list[str]:
    ceilings, kernels, share = result.ceilings, result.kernels, result.emulation_share_of_ceiling
    giga = 1e-9
    libraries = result.library_kernels
    return [
        "ceilings of this hardware",
        f"  {ceilings.emulator_frames_per_second:>10,.0f}  frames/s of plain emulation on a core",
        f"  {measure(ceilings.fp32_flop_per_second * giga):>10}  GFLOP/s in products of large matrices, fp32",
        f"  {measure(ceilings.bf16_flop_per_second * giga):>10}  GFLOP/s, bf16",
        f"  {measure(kernels.flop_per_second * giga):>10}  GFLOP/s in an update's {kernels.calls} "
        f"convolutions and products: {kernels.seconds * 1e3:.2f} ms",
        *(
            (f"{'':>12}(repeated patches counted, though computed once)",)
            if kernels.compute_repeats_once
            else ()
        ),
        *(() if libraries is None else (_line_of_libraries(libraries),)),
        f"  {ceilings.copy_bytes_per_second * giga:>10,.1f}  GB/s copied",
        "",
        "share of the ceilings reached",
        *_learner_lines(result),
        *(() if share is None else (f"  {share:>10.0%}  of plain emulation, while an emulator is busy",)),
    ]


def _line_of_libraries(kernels: Kernels) -> str:
    giga = 1e-9
    return (
        f"  {measure(kernels.flop_per_second * giga):>10}  GFLOP/s in the same by PyTorch's libraries: "
        f"{kernels.seconds * 1e3:.2f} ms"
    )


def _learner_lines(result: Bench) -> list[str]:
    share, of_library = result.learner_share_of_ceiling, result.learner_share_of_library
    lines = [] if share is None else [f"  {share:>10.0%}  of an update is convolutions and products"]
    if of_library is not None:
        lines.append(f"  {of_library:>10.0%}  is what PyTorch's libraries take for these alone")
    return lines
