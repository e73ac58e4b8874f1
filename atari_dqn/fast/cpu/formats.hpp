// The two formats that layers compute in, and how their matrices are laid out for products.
//
// A product goes along its sum word by word. A word is 32 bits: one fp32 value, or two bf16 values that follow
// each other along the sum. A panel holds 16 columns: row after row of 16 words, one of each column.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

using bf16 = std::uint16_t;
using std::size_t;
using word = float;  // its bits; read as vectors or by `repeated` alone

constexpr size_t kSide = 16;   // words of a vector: columns of a panel
constexpr size_t kBlock = 32;  // what sizes are a multiple of

inline size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// Memory that is kept from one call to the next, aligned for whole vectors; one for each thread.
template <class T>
class Scratch {
  public:
    T* of(size_t count) {
        if (count > count_) {
            std::free(at_);
            at_ = static_cast<T*>(std::aligned_alloc(64, round_up(count * sizeof(T), 64)));
            count_ = at_ ? count : 0;
            if (!at_) throw std::bad_alloc();
        }
        return at_;
    }
    ~Scratch() { std::free(at_); }

  private:
    T* at_ = nullptr;
    size_t count_ = 0;
};

// What is kept of a type, one for each thread.
template <class T>
T& kept() {
    static thread_local T memory;
    return memory;
}

// Has a line of memory be fetched that is about to be read, or to be written. Always inline: a compiler takes a function
// that does no more than that for one that does nothing, and leaves out its calls.
#define ALWAYS_INLINE inline __attribute__((always_inline))
ALWAYS_INLINE void ask_for(const void* at) { __builtin_prefetch(at); }
ALWAYS_INLINE void ask_to_write(const void* at) { __builtin_prefetch(at, 1); }

// A vector of one word over and over.
inline __m512 repeated(const word* at) {
    word x;
    std::memcpy(&x, at, sizeof x);
    return _mm512_set1_ps(x);
}

// The largest of 0 and x, or NaN: max returns its second operand where one of them is NaN.
inline __m512 rectified(__m512 x) { return _mm512_max_ps(_mm512_setzero_ps(), x); }

struct Fp32 {
    using value = float;
    static constexpr size_t kPerWord = 1;

    static __m512 add_product(__m512 a, __m512 b, __m512 sum) { return _mm512_fmadd_ps(a, b, sum); }

    static value of_byte(std::uint8_t x) { return x; }
    static bool is_positive_or_nan(value x) { return !(x <= 0); }

    static void load(const value* from, __m512& first, __m512& second) {
        first = _mm512_loadu_ps(from);
        second = _mm512_loadu_ps(from + kSide);
    }
    static void store(value* to, __m512 first, __m512 second) {
        _mm512_storeu_ps(to, first);
        _mm512_storeu_ps(to + kSide, second);
    }
    static void store_some(value* to, __mmask16 mask, __m512 x) { _mm512_mask_storeu_ps(to, mask, x); }

    // 32 values of `from` where those of `at` are positive or NaN; else 0
    static void keep_where_positive(const value* at, const value* from, value* to) {
        for (size_t i = 0; i < kBlock; i += kSide) {
            const __mmask16 kept = _mm512_cmp_ps_mask(_mm512_loadu_ps(at + i), _mm512_setzero_ps(), _CMP_NLE_UQ);
            _mm512_storeu_ps(to + i, _mm512_maskz_loadu_ps(kept, from + i));
        }
    }
    // 32 columns of the rows that a word holds, here one: a row of one panel, and `apart` words on, of the next
    static void place(const value* row, const value*, word* to, size_t apart) {
        _mm512_storeu_ps(to, _mm512_loadu_ps(row));
        _mm512_storeu_ps(to + apart, _mm512_loadu_ps(row + kSide));
    }
};

struct Bf16 {
    using value = bf16;
    static constexpr size_t kPerWord = 2;
    static constexpr short kInfinity = 0x7f80;

    static __m512 add_product(__m512 a, __m512 b, __m512 sum) {
        return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
    }

    static value of_byte(std::uint8_t x) {  // exact
        const float wide = x;
        std::uint32_t bits;
        std::memcpy(&bits, &wide, sizeof bits);
        return static_cast<value>(bits >> 16);
    }
    static bool is_positive_or_nan(value x) { return (x & 0x8000) == 0 ? x != 0 : (x & 0x7fff) > kInfinity; }

    static __m512 widened(__m256i x) {
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
    }
    static void load(const value* from, __m512& first, __m512& second) {
        const __m512i both = _mm512_loadu_si512(from);
        first = widened(_mm512_castsi512_si256(both));
        second = widened(_mm512_extracti64x4_epi64(both, 1));
    }
    static void store(value* to, __m512 first, __m512 second) {
        _mm512_storeu_si512(to, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first)));
    }
    static void store_some(value* to, __mmask16 mask, __m512 x) {
        _mm256_mask_storeu_epi16(to, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
    }
    static void keep_where_positive(const value* at, const value* from, value* to) {
        const __m512i values = _mm512_loadu_si512(at);
        const __m512i magnitudes = _mm512_and_si512(values, _mm512_set1_epi16(0x7fff));
        const __mmask32 kept = _mm512_cmpgt_epi16_mask(values, _mm512_setzero_si512()) |
                               _mm512_cmpgt_epi16_mask(magnitudes, _mm512_set1_epi16(kInfinity));
        _mm512_storeu_si512(to, _mm512_maskz_loadu_epi16(kept, from));
    }
    static void place(const value* a, const value* b, word* to, size_t apart) {
        const __m512i low = _mm512_set_epi16(
            47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2,
            33, 1, 32, 0);
        const __m512i x = _mm512_loadu_si512(a), y = _mm512_loadu_si512(b);
        const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
        _mm512_storeu_si512(to, _mm512_permutex2var_epi16(x, low, y));
        _mm512_storeu_si512(to + apart, _mm512_permutex2var_epi16(x, high, y));
    }
};

// What is done with sums before they are stored: 32 biases are added, and a ReLU follows or none.
template <class Format>
class Finish {
  public:
    Finish(const float* bias, bool relu)
        : first_bias_(_mm512_loadu_ps(bias)), second_bias_(_mm512_loadu_ps(bias + kSide)), relu_(relu) {}

    void store(__m512 first, __m512 second, typename Format::value* to) const {
        first = _mm512_add_ps(first, first_bias_), second = _mm512_add_ps(second, second_bias_);
        if (relu_) first = rectified(first), second = rectified(second);
        Format::store(to, first, second);
    }

  private:
    __m512 first_bias_, second_bias_;
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

// The transpose of 16 × 16 words.
inline void transpose_words(const word* from, size_t pitch, __m512i (&to)[kSide]) {
    __m512i a[kSide], b[kSide];
#pragma GCC unroll 16
    for (size_t i = 0; i < kSide; ++i) a[i] = _mm512_loadu_si512(from + i * pitch);
#pragma GCC unroll 8
    for (size_t i = 0; i < kSide; i += 2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < kSide; i += 4) {
        a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
        a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
        a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
        a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
        b[i] = _mm512_shuffle_i32x4(a[i], a[4 + i], 0x88);
        b[4 + i] = _mm512_shuffle_i32x4(a[i], a[4 + i], 0xdd);
        b[8 + i] = _mm512_shuffle_i32x4(a[8 + i], a[12 + i], 0x88);
        b[12 + i] = _mm512_shuffle_i32x4(a[8 + i], a[12 + i], 0xdd);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; ++i) {
        to[i] = _mm512_shuffle_i32x4(b[i], b[8 + i], 0x88);
        to[4 + i] = _mm512_shuffle_i32x4(b[4 + i], b[12 + i], 0x88);
        to[8 + i] = _mm512_shuffle_i32x4(b[i], b[8 + i], 0xdd);
        to[12 + i] = _mm512_shuffle_i32x4(b[4 + i], b[12 + i], 0xdd);
    }
}

// The panel whose columns are 16 rows of `words` words, a multiple of 16.
template <class Value>
void panel_of_rows(const Value* rows, size_t pitch, size_t words, word* panel) {
    const word* from = reinterpret_cast<const word*>(rows);
    const size_t word_pitch = pitch * sizeof(Value) / sizeof(word);
    __m512i block[kSide];
    for (size_t at = 0; at < words; at += kSide) {
        transpose_words(from + at, word_pitch, block);
        for (size_t i = 0; i < kSide; ++i) _mm512_storeu_si512(panel + (at + i) * kSide, block[i]);
    }
}

// The sums of the columns of `rows` × `columns` values, 32 at a time: the last may overlap those before.
template <class Format>
void sum_rows(const typename Format::value* x, size_t rows, size_t columns, float* sums) {
    for (size_t begin = 0; begin < columns; begin += kBlock) {
        const size_t column = std::min(begin, columns - kBlock);
        __m512 first = _mm512_setzero_ps(), second = first, more, still_more;
        for (size_t row = 0; row < rows; ++row) {
            Format::load(x + row * columns + column, more, still_more);
            first = _mm512_add_ps(first, more);
            second = _mm512_add_ps(second, still_more);
        }
        Fp32::store(sums + column, first, second);
    }
}
