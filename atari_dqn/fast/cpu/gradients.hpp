// What the gradient of a fully connected layer's weights is a product of, along the rows of a minibatch: the gradient
// upstream and the layer's input.
#pragma once

#include <algorithm>
#include <cstring>

#include "dispatch.hpp"

namespace {

constexpr size_t kBand = 128;  // columns of the weights that a core takes at a time

// Calls `run` with where each band of columns begins and ends; bands are shared among threads.
template <class Run>
void for_each_band(size_t columns, const Run& run) {
    for_each_piece((columns + kBand - 1) / kBand, [&](size_t band) {
        run(band * kBand, std::min((band + 1) * kBand, columns));
    });
}

template <class Unit>
class Sides {
    using Format = typename Unit::Format;
    using value = typename Unit::value;

  public:
    // `upstream` has `outputs` numbers for each of `count` rows.
    Sides(const value* x, const value* upstream, size_t count, size_t inputs, size_t outputs)
        : x_(x), count_(count), inputs_(inputs) {
        const size_t padded = round_up(count, kBlock);
        row_words = padded / Format::kPerWord;
        Room& room = kept<Room>();
        panels = room.panels.of(row_words * inputs);
        value* rows = room.rows.of(padded * outputs);
        std::memcpy(rows, upstream, count * outputs * sizeof(value));
        std::memset(rows + count * outputs, 0, (padded - count) * outputs * sizeof(value));
        gradient = rows;
        of_outputs = Unit::columns(rows, padded, outputs, room.columns);
    }

    // Lays the columns of x from `begin` to `end` out in panels, whose words go along the rows.
    void place(size_t begin, size_t end) const {
        for (size_t i = 0; i < row_words; ++i) {  // rows behind the last meet gradients of 0
            const auto* a = x_ + std::min(i * Format::kPerWord, count_ - 1) * inputs_;
            const auto* b = x_ + std::min((i + 1) * Format::kPerWord - 1, count_ - 1) * inputs_;
            for (size_t k = begin; k < end; k += kBlock)
                Format::place(a + k, b + k, panels + k * row_words + i * kSide, row_words * kSide);
        }
    }

    const value* gradient;  // row by row, with rows of 0 behind the last, up to a multiple of kBlock
    Rows of_outputs;        // the same column by column
    word* panels;
    size_t row_words;  // of a column

  private:
    struct Room {
        Scratch<value> rows;
        Scratch<word> columns, panels;
    };

    const value* x_;
    size_t count_, inputs_;
};

}  // namespace
