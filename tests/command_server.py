"""A process that has imported everything, and forks one that runs a `dqn` command for each order it reads.

An order is a line of JSON, the answer the command's exit code. Where `disk_faults.c` is preloaded, an order
may have it watch a folder, fail a call there, or record what changes there. Imports take most of a short
command's time: this spares them.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import traceback
from typing import Any

import torch

import atari_dqn.cli.train
from atari_dqn.cli import main as dqn
from atari_dqn.replay import rows


def make_pieces_small() -> None:
    """Have a small replay fill whole pieces, which checkpoints share. Digests rest on their size."""
    rows.PIECE_CELLS = 128


def arrange_faults(order: dict[str, Any]) -> None:
    """Tell the preloaded library what the order wants of it."""
    if not order.get("watch"):
        return
    library = ctypes.CDLL(None)
    library.faults_watch(order["watch"].encode())
    if order.get("record"):
        library.faults_record(order["record"].encode())
    if order.get("fault"):
        kind, nth, error, report = order["fault"]
        library.faults_arm(kind.encode(), ctypes.c_long(nth), error, report.encode())


def write_counts(path: str, kinds: list[str]) -> None:
    library = ctypes.CDLL(None)
    library.faults_count.restype = ctypes.c_long
    counts = {kind: library.faults_count(kind.encode()) for kind in kinds}
    with open(path, "w") as file:  # noqa: PTH123 - what is watched is not this folder
        json.dump(counts, file)


def run_command(order: dict[str, Any]) -> int:
    """Run the command of an order as the program would, with its output in a file; return its exit code."""
    os.setsid()
    output = os.open(order["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(output, 1)
    os.dup2(output, 2)
    torch.set_num_threads(1)
    make_pieces_small()
    sys.argv = ["dqn", *order["words"]]
    arrange_faults(order)
    try:
        dqn()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def child(order: dict[str, Any]) -> None:
    code = run_command(order)
    if order.get("counts"):
        write_counts(order["counts"], order["kinds"])
    sys.stdout.flush()
    os._exit(code)


def answer(value: object) -> None:
    sys.stdout.write(f"{value}\n")
    sys.stdout.flush()


def main() -> None:
    answer("ready")
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            child(json.loads(line))
        answer(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))


if __name__ == "__main__":
    assert atari_dqn.cli.train, "imported for the commands to come"
    main()
