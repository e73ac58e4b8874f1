// A tree of sums and minima, as described in replay/priority_tree.py, read and written node by node. For some dozens
// of indices this is far less work than tensor operations on each level.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "threads.hpp"

namespace {

// Sums a node's children: eight partial sums, always in the same order.
double sum_children(const double* children, std::int64_t fan_out) {
    constexpr std::int64_t kLanes = 8;
    double sums[kLanes] = {};
    for (std::int64_t i = 0; i < fan_out; ++i) sums[i % kLanes] += children[i];
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

// Returns the first child at which the running sum exceeds `remaining`; reduces `remaining` to the mass within it.
std::int64_t descend(const double* children, std::int64_t fan_out, double& remaining) {
    double total = 0;
    for (std::int64_t i = 0; i < fan_out; ++i) total += children[i];
    // Rounding may leave a mass at or past its node's sum; it then falls on the last child with priority.
    remaining = std::min(remaining, std::nextafter(total, 0.0));
    double running = 0;
    for (std::int64_t i = 0; i < fan_out; ++i) {
        running += children[i];
        if (children[i] > 0 && running > remaining) {
            remaining = remaining - running + children[i];
            return i;
        }
    }
    return 0;
}

}  // namespace

// Returns the checksum of the sources that this library was compiled from.
extern "C" unsigned kernel_sources() { return KERNEL_SOURCES; }

// Shares the loops of this library among the threads of a pool.
extern "C" void use_pool(const Pool* other) { pool = other; }

// Finds the leaf index that each mass falls on. `sums` has the levels from the leaves to the root.
extern "C" void find_indices(const double* const* sums, std::int64_t levels, std::int64_t fan_out,
                             const double* masses, std::int64_t count, std::int64_t* indices) {
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t node = 0;
        double remaining = masses[i];
        for (std::int64_t level = levels - 2; level >= 0; --level)
            node = node * fan_out + descend(sums[level] + node * fan_out, fan_out, remaining);
        indices[i] = node;
    }
}

// Draws a leaf index from each of `strata` equal parts of the total mass, for each row of `uniform` [rows, strata],
// numbers in [0, 1). The weights are the priorities relative to the smallest one, raised to `exponent`.
extern "C" void draw_indices(const double* const* sums, const double* const* minima, std::int64_t levels,
                             std::int64_t fan_out, const double* uniform, std::int64_t rows, std::int64_t strata,
                             double exponent, std::int64_t* indices, float* weights) {
    const double stratum = sums[levels - 1][0] / static_cast<double>(strata), smallest = minima[levels - 1][0];
    for (std::int64_t i = 0; i < rows * strata; ++i) {
        const double mass = (static_cast<double>(i % strata) + uniform[i]) * stratum;
        find_indices(sums, levels, fan_out, &mass, 1, indices + i);
        weights[i] = static_cast<float>(std::pow(sums[0][indices[i]] / smallest, exponent));
    }
}

// Sets the priorities of leaves, and each ancestor to the sum and minimum of its children. Returns false, and changes
// nothing, if an index is not less than `leaves`.
extern "C" bool set_priorities(double* const* sums, double* const* minima, std::int64_t levels, std::int64_t fan_out,
                               std::int64_t leaves, const std::int64_t* indices, const double* priorities,
                               std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
        if (indices[i] < 0 || indices[i] >= leaves) return false;
    for (std::int64_t i = 0; i < count; ++i) {
        sums[0][indices[i]] = priorities[i];
        minima[0][indices[i]] = priorities[i] == 0 ? std::numeric_limits<double>::infinity() : priorities[i];
    }
    std::int64_t leaves_per_node = 1;
    for (std::int64_t level = 0; level + 1 < levels; ++level) {
        leaves_per_node *= fan_out;
        std::int64_t updated = -1;
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t node = indices[i] / leaves_per_node;
            if (node == updated) continue;  // neighbouring leaves share a parent
            const double* children = sums[level] + node * fan_out;
            sums[level + 1][node] = sum_children(children, fan_out);
            minima[level + 1][node] =
                *std::min_element(minima[level] + node * fan_out, minima[level] + (node + 1) * fan_out);
            updated = node;
        }
    }
    return true;
}

// Sets priorities to (error + offset)^alpha and raises `highest` to the largest of them. If an index occurs twice,
// the larger error counts. An error whose priority is not finite, or whose leaf has priority 0, changes nothing.
// Returns false, and changes nothing, if an index is not less than `leaves`.
extern "C" bool set_by_errors(double* const* sums, double* const* minima, std::int64_t levels, std::int64_t fan_out,
                              std::int64_t leaves, const std::int64_t* indices, const float* errors,
                              std::int64_t count, double offset, double alpha, double* highest) {
    std::vector<double> candidates(count), priorities(count);
    for (std::int64_t i = 0; i < count; ++i) {
        if (indices[i] < 0 || indices[i] >= leaves) return false;
        const double priority = std::pow(errors[i] + offset, alpha);
        candidates[i] = std::isfinite(priority) && sums[0][indices[i]] > 0 ? priority : -1;
    }
    for (std::int64_t i = 0; i < count; ++i) {
        double largest = -1;
        for (std::int64_t j = 0; j < count; ++j)
            if (indices[j] == indices[i]) largest = std::max(largest, candidates[j]);
        priorities[i] = largest < 0 ? sums[0][indices[i]] : largest;
        *highest = std::max(*highest, priorities[i]);
    }
    return set_priorities(sums, minima, levels, fan_out, leaves, indices, priorities.data(), count);
}
