// Compares every compiled function with plain loops in double precision: prints each result that differs by more than
// rounding, and ends with 1 if one does.
#include "checks.hpp"

void check_convolutions();
void check_layers();
void check_networks();
void check_portable();

extern "C" int units();

int main() {
    if (units() == 0) return std::puts("this processor lacks the instruction set"), 2;
    check_portable();
    check_convolutions();
    check_layers();
    check_networks();
    std::printf("%d comparisons with vectors of %d numbers, %d failed\n", comparisons, block() / 2, failures);
    return failures > 0;
}
