"""The options of the programs that train one system each, and the software that they report.

Any interpreter can import this; it imports no torch by itself.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib.metadata import version


def worker_parser(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--game", required=True, help="as the system itself calls it")
    parser.add_argument("--seconds", type=float, required=True, help="to measure for")
    parser.add_argument("--threads", type=int, required=True, help="of torch")
    parser.add_argument("--envs", type=int, default=1)
    parser.add_argument("--epsilon", type=float, required=True)
    parser.add_argument("--capacity-steps", type=int, required=True)
    parser.add_argument("--prefill-steps", type=int, required=True)
    parser.add_argument("--target-period-updates", type=int, required=True)
    parser.add_argument("--warm-up-updates", type=int, required=True, help="after the prefill, not measured")
    return parser


def software(packages: Sequence[str] = ()) -> dict[str, str]:
    """List torch with its instruction set, and the versions of other packages."""
    import torch

    return {
        "torch": torch.__version__,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        **{name: version(name) for name in packages},
    }
