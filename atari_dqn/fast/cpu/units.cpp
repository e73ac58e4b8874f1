// Describes this library: the sources it was compiled from and the units that this processor supports.
#include "dispatch.hpp"

#if HAS_BF16
#include <sys/syscall.h>
#include <unistd.h>
#endif

// Returns the checksum of the sources that this library was compiled from.
extern "C" unsigned kernel_sources() { return KERNEL_SOURCES; }

// Shares the loops of this library among the threads of a pool.
extern "C" void use_pool(const Pool* other) { pool = other; }

// Returns the divisor that layers' sizes must have: the columns of a block.
extern "C" int block() { return kBlock; }

// Returns the units that this processor supports, one bit each; 0 if it lacks the instruction set. With AMX, requests
// the tile registers from Linux, which must happen before the first product.
extern "C" int units() {
#if defined(__AVX512F__)
    if (!(__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")))
        return 0;
#elif defined(__AVX2__)
    if (!(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))) return 0;
#endif
    int found = 1 << kVectorsFp32;
#if HAS_BF16
    constexpr long kRequest = 0x1023, kTileData = 18;
    if (!__builtin_cpu_supports("avx512bf16")) return found;
    found |= 1 << kVectorsBf16;
    if (__builtin_cpu_supports("amx-bf16") && syscall(SYS_arch_prctl, kRequest, kTileData) == 0)
        found |= 1 << kTilesBf16;
#endif
    return found;
}
