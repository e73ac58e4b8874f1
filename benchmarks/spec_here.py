"""A spec as `dqn train` would train it on this machine."""

from collections.abc import Sequence
from pathlib import Path

from atari_dqn.assembly.acceleration import has_kernels
from atari_dqn.machine.automatic import Machine, resolve_auto
from atari_dqn.machine.hardware import find_hardware
from atari_dqn.spec.loader import ResolvedSpec, load_spec


def load_spec_here(path: Path, overrides: Sequence[str] = (), *, device: str = "cpu") -> ResolvedSpec:
    """Load a spec and replace every `auto` by its value for this machine."""
    machine = Machine(device=device, hardware=find_hardware(Path.cwd()), has_kernels=has_kernels)
    return resolve_auto(load_spec(path, overrides), machine)[0]
