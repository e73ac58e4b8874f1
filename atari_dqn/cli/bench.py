"""`dqn bench`."""

from __future__ import annotations

import json as json_library
from pathlib import Path

import typer

from atari_dqn.bench.measurement import bench, bench_data, bench_text
from atari_dqn.files.atomic import plain
from atari_dqn.machine.automatic import resolve_auto
from atari_dqn.machine.devices import resolve_device
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.spec.loader import load_spec


def bench_spec(path: Path, overrides: list[str], *, device: str, seconds: float, as_json: bool) -> None:
    """Print how fast a spec trains here; write nothing."""
    resolved, chosen = load_spec(path, overrides), resolve_device(device)
    hardware = find_hardware(Path.cwd())
    resolved, choices = resolve_auto(resolved, device=str(chosen), hardware=hardware)
    result = bench(resolved.spec, name=path.name, device=chosen, seconds=seconds)
    text = json_library.dumps(plain(bench_data(result)), indent=2) if as_json else bench_text(result)
    typer.echo(text if as_json else "\n".join([*map(str, choices), text]))
