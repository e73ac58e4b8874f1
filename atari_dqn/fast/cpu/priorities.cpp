// A tree of sums and minima, as replay/priority_tree.py describes it, read and written node by node: for some dozens of
// cells that is far less work than asking for an operation on each level's columns.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "threads.hpp"

namespace {

// The sum of a node's children: eight sums side by side, always in the same order.
double sum_of(const double* children, std::int64_t fan_out) {
    constexpr std::int64_t kLanes = 8;
    double sums[kLanes] = {};
    for (std::int64_t i = 0; i < fan_out; ++i) sums[i % kLanes] += children[i];
    return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
}

// The first child that a running sum passes `left` with; `left` becomes what is left of it within that child.
std::int64_t descend(const double* children, std::int64_t fan_out, double& left) {
    double total = 0;
    for (std::int64_t i = 0; i < fan_out; ++i) total += children[i];
    // rounding may leave a mass at or past its node's sum: the last child with priority has it then
    left = std::min(left, std::nextafter(total, 0.0));
    double running = 0;
    for (std::int64_t i = 0; i < fan_out; ++i) {
        running += children[i];
        if (children[i] > 0 && running > left) {
            left = left - running + children[i];
            return i;
        }
    }
    return 0;
}

}  // namespace

// What this library was compiled of, as a number.
extern "C" unsigned kernel_sources() { return KERNEL_SOURCES; }

// Has its loops be shared by a pool's threads.
extern "C" void use_pool(const Pool* other) { pool = other; }

// The cell that each mass falls on. `sums` are the levels, leaves first, the root's last.
extern "C" void find_cells(const double* const* sums, std::int64_t levels, std::int64_t fan_out, const double* masses,
                           std::int64_t count, std::int64_t* cells) {
    for (std::int64_t i = 0; i < count; ++i) {
        std::int64_t node = 0;
        double left = masses[i];
        for (std::int64_t level = levels - 2; level >= 0; --level)
            node = node * fan_out + descend(sums[level] + node * fan_out, fan_out, left);
        cells[i] = node;
    }
}

// Draws from each of `strata` equal parts of all mass, by numbers in [0, 1), as often as there are rows of them: cells,
// and the weights of what they hold, relative to the smallest priority and raised to an exponent.
extern "C" void draw_cells(const double* const* sums, const double* const* minima, std::int64_t levels,
                           std::int64_t fan_out, const double* units, std::int64_t rows, std::int64_t strata,
                           double exponent, std::int64_t* cells, float* weights) {
    const double share = sums[levels - 1][0] / static_cast<double>(strata), smallest = minima[levels - 1][0];
    for (std::int64_t i = 0; i < rows * strata; ++i) {
        const double mass = (static_cast<double>(i % strata) + units[i]) * share;
        find_cells(sums, levels, fan_out, &mass, 1, cells + i);
        weights[i] = static_cast<float>(std::pow(sums[0][cells[i]] / smallest, exponent));
    }
}

// Gives cells their priorities, and every node above them the sum and the minimum of its children. False, and nothing
// changed, if one is not of the `leaves`.
extern "C" bool set_priorities(double* const* sums, double* const* minima, std::int64_t levels, std::int64_t fan_out,
                               std::int64_t leaves, const std::int64_t* cells, const double* priorities,
                               std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
        if (cells[i] < 0 || cells[i] >= leaves) return false;
    for (std::int64_t i = 0; i < count; ++i) {
        sums[0][cells[i]] = priorities[i];
        minima[0][cells[i]] = priorities[i] == 0 ? std::numeric_limits<double>::infinity() : priorities[i];
    }
    std::int64_t below = 1;  // leaves under a node
    for (std::int64_t level = 0; level + 1 < levels; ++level) {
        below *= fan_out;
        std::int64_t done = -1;
        for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t node = cells[i] / below;
            if (node == done) continue;  // neighbours share theirs
            const double* children = sums[level] + node * fan_out;
            sums[level + 1][node] = sum_of(children, fan_out);
            minima[level + 1][node] = *std::min_element(minima[level] + node * fan_out,
                                                        minima[level] + (node + 1) * fan_out);
            done = node;
        }
    }
    return true;
}

// Sets drawn cells to the priorities that errors give them, (error + offset) to the power of alpha, and raises `highest`
// to the largest of these. Of a cell drawn twice the larger error counts. An error that gives no finite priority, and
// one of a cell of priority 0, changes nothing. False, and nothing changed, if a cell is not of the `leaves`.
extern "C" bool set_by_errors(double* const* sums, double* const* minima, std::int64_t levels, std::int64_t fan_out,
                              std::int64_t leaves, const std::int64_t* cells, const float* errors, std::int64_t count,
                              double offset, double alpha, double* highest) {
    std::vector<double> found(count), priorities(count);
    for (std::int64_t i = 0; i < count; ++i) {
        if (cells[i] < 0 || cells[i] >= leaves) return false;
        const double priority = std::pow(errors[i] + offset, alpha);
        found[i] = std::isfinite(priority) && sums[0][cells[i]] > 0 ? priority : -1;
    }
    for (std::int64_t i = 0; i < count; ++i) {
        double largest = -1;
        for (std::int64_t j = 0; j < count; ++j)
            if (cells[j] == cells[i]) largest = std::max(largest, found[j]);
        priorities[i] = largest < 0 ? sums[0][cells[i]] : largest;
        *highest = std::max(*highest, priorities[i]);
    }
    return set_priorities(sums, minima, levels, fan_out, leaves, cells, priorities.data(), count);
}
