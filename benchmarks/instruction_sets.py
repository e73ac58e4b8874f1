"""Hold every contender to one instruction set, and check it in the libraries' own reports.

Held are PyTorch's own loops, oneDNN, MKL and our kernels. NumPy, OpenCV and the emulator choose for
themselves, alike for all. MKL obeys its variable on Intel's processors alone; on an AMD EPYC it changed
nothing, and MKL's report names no instruction set there, which is no contradiction.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

ISAS = ("native", "avx2", "avx512")
"""`native`: no contender is held to anything."""
OVERRIDE = "ATARI_DQN_ISA"
"""The variable of our own kernels."""
VARIABLES: dict[str, dict[str, str]] = {
    "native": {},
    "avx2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
        OVERRIDE: "avx2",
    },
    "avx512": {
        "ATEN_CPU_CAPABILITY": "avx512",
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16",  # the largest without tile registers
        "MKL_ENABLE_INSTRUCTIONS": "AVX512",
        OVERRIDE: "avx512",
    },
}
NAMES = frozenset(VARIABLES["avx2"])
OF_WORKERS = ("cpu_capability", "kernels")
"""What the workers themselves report; ours alone has kernels."""
VERBOSE = {"ONEDNN_VERBOSE": "1", "MKL_VERBOSE": "1"}
_NEEDED = {"native": (), "avx2": ("avx2",), "avx512": ("avx512f",)}
_BEYOND = {"avx2": ("avx512", "amx"), "avx512": ("amx",)}
"""How the names of processor flags begin that an instruction set leaves out."""
_LARGER = {"avx2": {"avx512", "amx"}, "avx512": {"amx"}}


def lacking(isa: str, flags: Sequence[str] | None) -> tuple[str, ...]:
    """List the flags that an instruction set needs and this processor does not report."""
    return tuple(flag for flag in _NEEDED[isa] if flag not in (flags or ()))


def flags_within(isa: str, flags: Sequence[str]) -> tuple[str, ...]:
    """Leave out the processor flags beyond an instruction set; what is not named here leaves none out."""
    return tuple(flag for flag in flags if not flag.startswith(_BEYOND.get(isa, ("no such flag",))))


def named_sets(text: str) -> set[str]:
    """Find the instruction sets, among those that matter here, that a report names."""
    plain = text.lower().replace("-", "")
    patterns = {
        "avx2": r"avx2|\(avx2\)|extensions 2\b",
        "avx512": "avx512|extensions 512|avx10",
        "amx": "amx",
    }
    return {name for name, pattern in patterns.items() if re.search(pattern, plain)}


def library_reports(output: str) -> dict[str, Any]:
    """Read oneDNN's and MKL's reports from a program's output; None for a library that was not called.

    `implementations`: how often each of oneDNN's ran, by kind of primitive and name.
    """
    onednn = re.search(r"onednn_verbose,v\d+,info,cpu,isa:([^\n]*)", output)
    ran = re.findall(r"onednn_verbose,v\d+,primitive,exec,cpu,(\w+,[^,\n]+),", output)
    mkl = re.search(r"MKL_VERBOSE (?:Intel\(R\) |oneMKL)[^\n]* architecture ([^\n]*? processors)", output)
    return {
        "onednn": onednn and onednn.group(1),
        "onednn_implementations": dict(Counter(ran).most_common()),
        "mkl": mkl and mkl.group(1),
        "mkl_calls": len(re.findall(r"MKL_VERBOSE [A-Z]+\(", output)),
    }


def contradictions(isa: str, report: Mapping[str, Any]) -> list[str]:
    """List where a contender's reports contradict the instruction set that it was held to.

    `report`: `library_reports`, and what the worker reported itself, `OF_WORKERS`.
    """
    if isa == "native":
        return []
    found = [
        f"{library} reports {said!r}"
        for library, said in {"torch": report["cpu_capability"], "oneDNN": report["onednn"]}.items()
        if said is not None and named_sets(said) != {isa}
    ]
    if named_sets(report["mkl"] or "") - {isa}:
        found.append(f"MKL reports {report['mkl']!r}")
    found += [f"{name} ran" for name in report["onednn_implementations"] if named_sets(name) & _LARGER[isa]]
    kernels = [name for name in report.get("kernels", ()) if kernel_set(name) not in (None, isa)]
    return found + [f"our kernels are {name!r}" for name in kernels]


def kernel_set(name: str) -> str | None:
    """Return the instruction set of a kernel of ours by its name; None for those that multiply nothing.

    AVX-512's vectors were the first, and their names have no suffix.
    """
    if "tiles" in name:
        return "amx"
    return (name.partition(" of ")[2].lower() or "avx512") if "vectors" in name else None
