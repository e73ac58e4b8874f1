"""A server that imports the package once and forks a process for each `dqn` command that it is sent.

An order is a line of JSON on the standard input: the `words` of the command, its folder (`cwd`), its
environment (`env`), and the files for its `output` and its `errors`. The answer is the exit code. `path`
lists folders with further packages. With `small_pieces`, a small replay fills whole pieces, which
checkpoints share. With `disk_faults.c` preloaded, an order may also name a folder to `watch`, a `fault` in
it, a file to `record` its changes, and a file for the `counts` of calls of some `kinds`. Imports would take
most of the time of a short command. forked.py is its client.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import pkgutil
import sys
import traceback
from typing import Any

import torch
import typer

import atari_dqn.cli.app
from atari_dqn.replay import rows


def import_commands() -> None:
    """Import what commands import when they run: all of the package but the pages, which need NiceGUI."""
    for module in pkgutil.walk_packages(atari_dqn.__path__, "atari_dqn."):
        if "._" not in module.name and "dashboard" not in module.name:  # kernels and `__main__` begin with _
            importlib.import_module(module.name)
    program = typer.main.get_command(atari_dqn.cli.app.app)
    program.commands["watch"].make_context("watch", ["a run"])  # typer imports more for the first argument
    gc.freeze()  # or each fork's collector writes to, and so copies, all that is here


def make_pieces_small() -> None:
    """Reduce the size of replay pieces, so that a small replay fills some. Digests depend on this size."""
    rows.PIECE_FRAMES = 128


def arrange_faults(order: dict[str, Any]) -> None:
    """Configure the preloaded library as the order requires."""
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
    with open(path, "w") as file:  # noqa: PTH123 - not in the watched folder
        json.dump(counts, file)


def direct_streams(order: dict[str, Any]) -> None:
    """Connect the standard streams to the files of an order; the standard input has ended."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for stream, name in ((1, "output"), (2, "errors")):
        os.dup2(os.open(order[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), stream)


def run_command(order: dict[str, Any]) -> int:
    """Run the command of an order with its output in files, and return its exit code."""
    os.setsid()
    direct_streams(order)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    sys.path[:0] = order.get("path", [])
    torch.set_num_threads(1)
    if order.get("small_pieces"):
        make_pieces_small()
    sys.argv = ["dqn", *order["words"]]
    arrange_faults(order)
    try:
        atari_dqn.cli.main()
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
    import_commands()
    answer("ready")
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            child(json.loads(line))
        answer(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))


if __name__ == "__main__":
    main()
