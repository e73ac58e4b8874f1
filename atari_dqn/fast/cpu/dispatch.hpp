// Selects one of a library's units by number.
#pragma once

#include "threads.hpp"
#include "units.hpp"

#if defined(__AVX512BF16__) && defined(__AMX_BF16__)
#define HAS_BF16 1
#include "bf16.hpp"
#else
#define HAS_BF16 0
#endif

// The units, in the order of UNITS in library.py.
enum Unit { kVectorsFp32, kVectorsBf16, kTilesBf16 };

// Calls `run` with the unit of the given number.
template <class Run>
void with_unit(int unit, Run run) {
    if (unit == kVectorsFp32) run(Vectors<Fp32>());
#if HAS_BF16
    if (unit == kVectorsBf16) run(Vectors<Bf16>());
    if (unit == kTilesBf16) run(Tiles());
#endif
}
