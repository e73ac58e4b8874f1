// The two formats that layers compute in, and how their matrices are laid out for products.
//
// A product goes along its sum word by word. A word is 32 bits: one fp32 value, or two bf16 values that follow
// each other along the sum. A panel holds as many columns as a vector has numbers: row after row, a word of each.
#pragma once

#include <algorithm>

#include "vector.hpp"

using word = float;  // its bits; only copied, or multiplied by Format::add_product

// A vector of one word, which may be two bf16 values at an address that is no multiple of 4.
ALWAYS_INLINE vec repeated(const word* at) {
    word one;
    std::memcpy(&one, at, sizeof one);
    return splat(one);
}

struct Fp32 {
    using value = float;
    static constexpr size_t kPerWord = 1;

    static ALWAYS_INLINE vec add_product(vec a, vec b, vec sum) { return multiply_add(a, b, sum); }

    static value of(std::uint8_t x) { return x; }
    static value of(float x) { return x; }
    static bool is_positive_or_nan(value x) { return !(x <= 0); }

    static ALWAYS_INLINE void load(const value* from, vec& first, vec& second) {
        first = ::load(from);
        second = ::load(from + kSide);
    }
    static ALWAYS_INLINE void store(value* to, vec first, vec second) {
        ::store(to, first);
        ::store(to + kSide, second);
    }
    static void store_some(value* to, size_t count, vec x) { std::memcpy(to, &x, count * sizeof *to); }

    // A block of `from` where `at` is positive or NaN; else 0.
    static void keep_where_positive(const value* at, const value* from, value* to) {
        for (size_t i = 0; i < kBlock; i += kSide) ::store(to + i, ::load(at + i) <= vec{} ? vec{} : ::load(from + i));
    }
    // A block of columns of the rows that a word holds, here one: a row of one panel, and `apart` words on, of the next.
    static ALWAYS_INLINE void place(const value* row, const value*, word* to, size_t apart) {
        ::store(to, ::load(row));
        ::store(to + apart, ::load(row + kSide));
    }
};

// What is done with sums before they are stored: a block of biases is added, and a ReLU follows or none.
template <class Format>
class Finish {
  public:
    Finish(const float* bias, bool relu) : first_bias_(load(bias)), second_bias_(load(bias + kSide)), relu_(relu) {}

    ALWAYS_INLINE void store(vec first, vec second, typename Format::value* to) const {
        first += first_bias_, second += second_bias_;
        if (relu_) first = rectified(first), second = rectified(second);
        Format::store(to, first, second);
    }

  private:
    vec first_bias_, second_bias_;
    bool relu_;
};

// An upstream gradient where a ReLU let `output` through; all of it if that is null.
template <class Format>
void keep(const typename Format::value* output, const typename Format::value* upstream, size_t values,
          typename Format::value* to) {
    if (!output) {
        std::memcpy(to, upstream, values * sizeof *to);
        return;
    }
    size_t at = 0;
    for (; at + kBlock <= values; at += kBlock) Format::keep_where_positive(output + at, upstream + at, to + at);
    for (; at < values; ++at) to[at] = Format::is_positive_or_nan(output[at]) ? upstream[at] : typename Format::value(0);
}

// The transpose of as many rows of words as a vector has numbers.
ALWAYS_INLINE void transpose_words(const word* from, size_t pitch, vec (&to)[kSide]) {
#pragma GCC unroll 16
    for (size_t i = 0; i < kSide; ++i) to[i] = load(from + i * pitch);
    transpose(to);
}

// The panel whose columns are rows of `words` words.
template <class Value>
void panel_of_rows(const Value* rows, size_t pitch, size_t words, word* panel) {
    const word* from = reinterpret_cast<const word*>(rows);
    const size_t word_pitch = pitch * sizeof(Value) / sizeof(word);
    vec block[kSide];
    size_t at = 0;
    for (; at + kSide <= words; at += kSide) {
        transpose_words(from + at, word_pitch, block);
        for (size_t i = 0; i < kSide; ++i) store(panel + (at + i) * kSide, block[i]);
    }
    for (; at < words; ++at)
        for (size_t i = 0; i < kSide; ++i) std::memcpy(panel + at * kSide + i, from + i * word_pitch + at, sizeof(word));
}

// The sums of the columns of `rows` × `columns` values, a block at a time: the last may overlap those before. They are
// added to what is there if `onward`; columns are then a multiple of a block.
template <class Format>
void sum_rows(const typename Format::value* x, size_t rows, size_t columns, float* sums, bool onward = false) {
    for (size_t begin = 0; begin < columns; begin += kBlock) {
        const size_t column = std::min(begin, columns - kBlock);
        vec first{}, second{}, more, still_more;
        if (onward) Fp32::load(sums + column, first, second);
        for (size_t row = 0; row < rows; ++row) {
            Format::load(x + row * columns + column, more, still_more);
            first += more;
            second += still_more;
        }
        Fp32::store(sums + column, first, second);
    }
}
