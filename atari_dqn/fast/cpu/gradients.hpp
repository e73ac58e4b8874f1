// The two factors of the gradient of a fully connected layer's weights, upstreamᵀ x, which sums over the minibatch.
#pragma once

#include <algorithm>
#include <cstring>

#include "dispatch.hpp"

namespace {

constexpr size_t kBand = 128;  // columns of the weights that a core processes at a time

// Calls `run(begin, end)` for each band of columns; the bands are shared among threads.
template <class Run>
void for_each_band(size_t columns, const Run& run) {
    for_each_piece((columns + kBand - 1) / kBand,
                   [&](size_t band) { run(band * kBand, std::min((band + 1) * kBand, columns)); });
}

template <class Unit>
class GradientFactors {
    using Format = typename Unit::Format;
    using value = typename Unit::value;

  public:
    // x is [count, inputs], upstream [count, outputs].
    GradientFactors(const value* x, const value* upstream, size_t count, size_t inputs, size_t outputs)
        : x_(x), count_(count), inputs_(inputs) {
        const size_t padded = round_up(count, kBlock);
        row_words = padded / Format::kPerWord;
        Buffers& buffers = per_thread<Buffers>();
        panels = buffers.panels.get(row_words * inputs);
        value* rows = buffers.rows.get(padded * outputs);
        std::memcpy(rows, upstream, count * outputs * sizeof(value));
        std::memset(rows + count * outputs, 0, (padded - count) * outputs * sizeof(value));
        gradient = rows;
        gradient_columns = Unit::columns(rows, padded, outputs, buffers.columns);
    }

    // Packs the columns `begin` to `end` of x into panels, whose words run along the rows.
    void pack_x(size_t begin, size_t end) const {
        // Rows past the last repeat it; they meet upstream gradients of 0.
        for (size_t i = 0; i < row_words; ++i) {
            const auto* a = x_ + std::min(i * Format::kPerWord, count_ - 1) * inputs_;
            const auto* b = x_ + std::min((i + 1) * Format::kPerWord - 1, count_ - 1) * inputs_;
            for (size_t k = begin; k < end; k += kBlock)
                Format::pack(a + k, b + k, panels + k * row_words + i * kLanes, row_words * kLanes);
        }
    }

    const value* gradient;  // row-major, padded with rows of 0 to a multiple of kBlock
    Rows gradient_columns;  // its columns, as rows of a product
    word* panels;
    size_t row_words;  // words per column

  private:
    struct Buffers {
        Scratch<value> rows;
        Scratch<word> columns, panels;
    };

    const value* x_;
    size_t count_, inputs_;
};

}  // namespace
