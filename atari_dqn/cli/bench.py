"""`dqn bench`."""

from __future__ import annotations

import json as json_library
from pathlib import Path
from typing import Annotated

import typer

from atari_dqn.cli.options import DeviceOption, JsonOption, SetOption, SpecPath, check_spec, number
from atari_dqn.envs.processes import interrupts_blocked
from atari_dqn.formatting import wrapped
from atari_dqn.machine.devices import check_device_name, resolve_device

EXAMPLES = """\
dqn bench pong_quick
dqn bench pong_quick --set learner.precision=fp32 --json"""


def bench(
    spec: SpecPath,
    overrides: SetOption = None,
    device: DeviceOption = "auto",
    seconds: Annotated[str, typer.Option(metavar="SECONDS", help="How long to train.")] = "10",
    json: JsonOption = False,
) -> None:
    """Measure how fast a spec trains here, where the time goes, and what the hardware could do."""
    trained_seconds = number("--seconds", seconds, low=1.0)
    check_device_name(device)
    check_spec(spec, overrides)
    with interrupts_blocked():
        from atari_dqn.assembly.acceleration import has_kernels
        from atari_dqn.bench import measurement
        from atari_dqn.files.atomic import plain
        from atari_dqn.machine.automatic import Machine, choices_text, resolve_auto
        from atari_dqn.machine.hardware import find_hardware
        from atari_dqn.spec.loader import load_spec

    resolved, chosen = load_spec(spec, overrides or []), resolve_device(device)
    hardware = find_hardware(Path.cwd())
    machine = Machine(device=str(chosen), hardware=hardware, has_kernels=has_kernels)
    resolved, choices = resolve_auto(resolved, machine)
    result = measurement.bench(resolved.spec, name=spec.name, device=chosen, seconds=trained_seconds)
    if json:
        typer.echo(json_library.dumps(plain(measurement.bench_data(result)), indent=2))
    else:
        chosen_text = [wrapped(choices_text(choices))] if choices else []
        typer.echo("\n".join([*chosen_text, measurement.bench_text(result)]))
