// Compares every compiled function with plain loops in double precision: prints each result that differs by more than
// rounding, and ends with 1 if one does. CHECK_THREADS threads share the loops, three where it is not set.
#include <cstdlib>

#include "../../../atari_dqn/fast/cpu/threads.hpp"
#include "checks.hpp"

void check_convolutions();
void check_layers();
void check_networks();
void check_portable();
void check_patch_groups();

extern "C" {
int units();
const Pool* pool_of(int (*count)());
void use_pool(const Pool*);
}

static int num_threads() {
    const char* chosen = std::getenv("CHECK_THREADS");
    return chosen ? std::atoi(chosen) : 3;
}

int main() {
    use_pool(pool_of(num_threads));
    if (units() == 0) return std::puts("this processor lacks the instruction set"), 2;
    check_portable();
    check_patch_groups();
    check_convolutions();
    check_layers();
    check_networks();
    std::printf("%d comparisons with vectors of %d numbers, %d failed\n", comparisons, block() / 2, failures);
    return failures > 0;
}
