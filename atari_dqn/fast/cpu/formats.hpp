// The two number formats of layers, fp32 and bf16, and the packing of their matrices for products.
//
// A product is accumulated word by word. A word has 32 bits: one fp32 value, or two bf16 values that are adjacent
// along the summed dimension. A panel has as many columns as a vector has elements, stored as [words, kLanes].
#pragma once

#include <algorithm>

#include "vector.hpp"

using word = float;  // opaque bits: only copied, or passed to Format::add_product

// Broadcasts a word, which may be two bf16 values at an address that is not a multiple of 4.
ALWAYS_INLINE vec broadcast(const word* at) {
    word one;
    std::memcpy(&one, at, sizeof one);
    return splat(one);
}

struct Fp32 {
    using value = float;
    static constexpr size_t kPerWord = 1;

    static ALWAYS_INLINE vec add_product(vec a, vec b, vec sum) { return multiply_add(a, b, sum); }

    static value from(std::uint8_t x) { return x; }
    static value from(float x) { return x; }
    static bool is_positive_or_nan(value x) { return !(x <= 0); }

    static ALWAYS_INLINE void load(const value* from, vec& first, vec& second) {
        first = ::load(from);
        second = ::load(from + kLanes);
    }
    static ALWAYS_INLINE void store(value* to, vec first, vec second) {
        ::store(to, first);
        ::store(to + kLanes, second);
    }
    static void store_partial(value* to, size_t count, vec x) { std::memcpy(to, &x, count * sizeof *to); }

    // Copies a block of `from` where `at` is positive or NaN, and sets the rest to 0.
    static void select_where_positive(const value* at, const value* from, value* to) {
        for (size_t i = 0; i < kBlock; i += kLanes)
            ::store(to + i, ::load(at + i) <= vec{} ? vec{} : ::load(from + i));
    }
    // Packs a block of columns of the rows of one word, here one row, into two panels `panel_stride` words apart.
    static ALWAYS_INLINE void pack(const value* row, const value*, word* to, size_t panel_stride) {
        ::store(to, ::load(row));
        ::store(to + panel_stride, ::load(row + kLanes));
    }
};

// The epilogue of a product: adds a block of biases and optionally applies a ReLU before sums are stored.
template <class Format>
class Epilogue {
  public:
    Epilogue(const float* bias, bool relu)
        : first_bias_(load(bias)), second_bias_(load(bias + kLanes)), relu_(relu) {}

    ALWAYS_INLINE void store(vec first, vec second, typename Format::value* to) const {
        first += first_bias_, second += second_bias_;
        if (relu_) first = rectified(first), second = rectified(second);
        Format::store(to, first, second);
    }

  private:
    vec first_bias_, second_bias_;
    bool relu_;
};

// The backward pass of a ReLU: passes the upstream gradient where `output` is positive, NaN or absent (null).
template <class Format>
void relu_backward(const typename Format::value* output, const typename Format::value* upstream, size_t values,
                   typename Format::value* to) {
    if (!output) {
        std::memcpy(to, upstream, values * sizeof *to);
        return;
    }
    size_t at = 0;
    for (; at + kBlock <= values; at += kBlock) Format::select_where_positive(output + at, upstream + at, to + at);
    for (; at < values; ++at)
        to[at] = Format::is_positive_or_nan(output[at]) ? upstream[at] : typename Format::value(0);
}

// Loads and transposes kLanes rows of kLanes words.
ALWAYS_INLINE void transpose_words(const word* from, size_t pitch, vec (&to)[kLanes]) {
#pragma GCC unroll 16
    for (size_t i = 0; i < kLanes; ++i) to[i] = load(from + i * pitch);
    transpose(to);
}

// Packs kLanes rows of `words` words as the columns of a panel.
template <class Value>
void pack_rows(const Value* rows, size_t pitch, size_t words, word* panel) {
    const word* from = reinterpret_cast<const word*>(rows);
    const size_t word_pitch = pitch * sizeof(Value) / sizeof(word);
    vec block[kLanes];
    size_t at = 0;
    for (; at + kLanes <= words; at += kLanes) {
        transpose_words(from + at, word_pitch, block);
        for (size_t i = 0; i < kLanes; ++i) store(panel + (at + i) * kLanes, block[i]);
    }
    for (; at < words; ++at)
        for (size_t i = 0; i < kLanes; ++i)
            std::memcpy(panel + at * kLanes + i, from + i * word_pitch + at, sizeof(word));
}

// Sums the columns of x [rows, columns], one block at a time; the last block may overlap its neighbour. If
// `accumulate`, adds to the existing sums; `columns` must then be a multiple of kBlock.
template <class Format>
void sum_rows(const typename Format::value* x, size_t rows, size_t columns, float* sums, bool accumulate = false) {
    for (size_t begin = 0; begin < columns; begin += kBlock) {
        const size_t column = std::min(begin, columns - kBlock);
        vec first{}, second{}, first_more, second_more;
        if (accumulate) Fp32::load(sums + column, first, second);
        for (size_t row = 0; row < rows; ++row) {
            Format::load(x + row * columns + column, first_more, second_more);
            first += first_more;
            second += second_more;
        }
        Fp32::store(sums + column, first, second);
    }
}
