"""The options of the programs that train one system each; any interpreter can import this."""

from __future__ import annotations

import argparse


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
