// What this library is: which sources it was compiled of, and which units it has on this processor.
#include "dispatch.hpp"

#if HAS_BF16
#include <sys/syscall.h>
#include <unistd.h>
#endif

extern "C" unsigned kernel_sources() { return KERNEL_SOURCES; }

// Has the kernels' loops be shared by a pool's threads.
extern "C" void use_pool(const Pool* other) { pool = other; }

// What the sizes of layers are multiples of: the columns of a block.
extern "C" int block() { return kBlock; }

// Which units this processor has, one bit each; 0 if it lacks the instruction set. With AMX it asks the system for tile
// registers, once, before the first product.
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
