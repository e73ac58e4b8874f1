// Products of bf16 values, accumulated in fp32: by vectors of AVX512_BF16 or by tile registers (AMX).
#pragma once

#include "formats.hpp"
#include "units.hpp"

struct Bf16 {
    using value = bf16;
    static constexpr size_t kPerWord = 2;
    static constexpr short kInfinity = 0x7f80;

    static ALWAYS_INLINE vec add_product(vec a, vec b, vec sum) {
        return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
    }

    static std::uint32_t bits_of(float x) {
        std::uint32_t bits;
        std::memcpy(&bits, &x, sizeof bits);
        return bits;
    }
    static value from(std::uint8_t x) { return static_cast<value>(bits_of(x) >> 16); }  // exact
    static value from(float x) {  // rounds to nearest, ties to even
        const std::uint32_t bits = bits_of(x);
        return static_cast<value>(x == x ? (bits + 0x7fff + (bits >> 16 & 1)) >> 16 : bits >> 16 | 0x40);
    }
    static bool is_positive_or_nan(value x) { return (x & 0x8000) == 0 ? x != 0 : (x & 0x7fff) > kInfinity; }

    static vec widened(__m256i x) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16)); }
    static void load(const value* from, vec& first, vec& second) {
        const __m512i both = _mm512_loadu_si512(from);
        first = widened(_mm512_castsi512_si256(both));
        second = widened(_mm512_extracti64x4_epi64(both, 1));
    }
    static void store(value* to, vec first, vec second) {
        _mm512_storeu_si512(to, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first)));
    }
    static void store_partial(value* to, size_t count, vec x) {
        const __m256bh narrow = _mm512_cvtneps_pbh(x);
        std::memcpy(to, &narrow, count * sizeof *to);
    }
    static void select_where_positive(const value* at, const value* from, value* to) {
        const __m512i values = _mm512_loadu_si512(at);
        const __m512i magnitudes = _mm512_and_si512(values, _mm512_set1_epi16(0x7fff));
        const __mmask32 selected = _mm512_cmpgt_epi16_mask(values, _mm512_setzero_si512()) |
                                   _mm512_cmpgt_epi16_mask(magnitudes, _mm512_set1_epi16(kInfinity));
        _mm512_storeu_si512(to, _mm512_maskz_loadu_epi16(selected, from));
    }
    static void pack(const value* a, const value* b, word* to, size_t panel_stride) {
        const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38,
                                             6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
        const __m512i x = _mm512_loadu_si512(a), y = _mm512_loadu_si512(b);
        const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
        _mm512_storeu_si512(to, _mm512_permutex2var_epi16(x, low, y));
        _mm512_storeu_si512(to + panel_stride, _mm512_permutex2var_epi16(x, high, y));
    }
};

// A tile of A has 16 rows of 16 words, a tile of B 16 words of a panel, a tile of sums 16 × 16 fp32 values.
struct Tiles {
    using Format = Bf16;
    using value = bf16;
    static constexpr size_t kRows = 16, kFewRows = 8;
    static constexpr bool kTakesRows = false;

    // Needed because the tile intrinsics do not tell the compiler which memory they read.
    static void compiler_barrier() { asm volatile("" ::: "memory"); }

    static __m512i bits(vec x) { return _mm512_castps_si512(x); }

    // Configures this thread's tile registers while it lives: tiles 0 to 3 for sums, 4 and 5 for A, 6 and 7 for B.
    class Scope {
      public:
        explicit Scope(size_t rows) {
            struct alignas(64) {
                std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
                std::uint16_t row_bytes[16] = {};
                std::uint8_t rows[16] = {};
            } layout;
            for (int tile = 0; tile < 8; ++tile) {
                layout.row_bytes[tile] = 64;
                layout.rows[tile] = static_cast<std::uint8_t>(tile < 6 ? rows : kLanes);
            }
            compiler_barrier();
            _tile_loadconfig(&layout);
        }
        Scope(const Scope&) = delete;
        ~Scope() { _tile_release(); }
    };

    static void products(Rows a, size_t, Reduction reduction, const word* panel, const word* next, float* to,
                         size_t pitch) {
        const size_t bytes = a.pitch * sizeof(word), sum_bytes = pitch * sizeof(float);
        compiler_barrier();
        if (reduction.accumulate) {
            _tile_loadd(0, to, sum_bytes);
            _tile_loadd(1, to + kLanes, sum_bytes);
        } else {
            _tile_zero(0);
            _tile_zero(1);
        }
        for (size_t run = 0; run < reduction.runs; ++run) {
            const word* from = a.at + run * reduction.run_stride;
            for (size_t i = 0; i < reduction.words; i += kLanes, panel += kLanes * kLanes, next += kLanes * kLanes) {
                _tile_loadd(4, from + i, bytes);
                _tile_loadd(6, panel, 64);
                _tile_dpbf16ps(0, 4, 6);
                _tile_loadd(7, next, 64);
                _tile_dpbf16ps(1, 4, 7);
            }
        }
        _tile_stored(0, to, sum_bytes);
        _tile_stored(1, to + kLanes, sum_bytes);
    }

    static void products(Rows a, Rows b, size_t, Reduction reduction, const word* panel, const word* next,
                         float* to_a, float* to_b, size_t pitch) {
        const size_t bytes = a.pitch * sizeof(word), sum_bytes = pitch * sizeof(float);
        compiler_barrier();
        if (reduction.accumulate) {
            _tile_loadd(0, to_a, sum_bytes);
            _tile_loadd(1, to_a + kLanes, sum_bytes);
            _tile_loadd(2, to_b, sum_bytes);
            _tile_loadd(3, to_b + kLanes, sum_bytes);
        } else {
            _tile_zero(0);
            _tile_zero(1);
            _tile_zero(2);
            _tile_zero(3);
        }
        for (size_t run = 0; run < reduction.runs; ++run) {
            const word *first = a.at + run * reduction.run_stride, *second = b.at + run * reduction.run_stride;
            for (size_t i = 0; i < reduction.words; i += kLanes, panel += kLanes * kLanes, next += kLanes * kLanes) {
                _tile_loadd(4, first + i, bytes);
                _tile_loadd(6, panel, 64);
                _tile_dpbf16ps(0, 4, 6);
                _tile_loadd(7, next, 64);
                _tile_dpbf16ps(1, 4, 7);
                _tile_loadd(5, second + i, bytes);
                _tile_dpbf16ps(2, 5, 6);
                _tile_dpbf16ps(3, 5, 7);
            }
        }
        _tile_stored(0, to_a, sum_bytes);
        _tile_stored(1, to_a + kLanes, sum_bytes);
        _tile_stored(2, to_b, sum_bytes);
        _tile_stored(3, to_b + kLanes, sum_bytes);
    }

    // As above, for 32 rows. Nothing is prefetched: the words of a tile come from many cache lines anyway.
    template <class Lines>
    static void products(Rows a, Reduction reduction, InPanels columns, Lines, float* to, size_t pitch) {
        products(a, a.from(kLanes), kLanes, reduction, columns.panel, columns.next, to, to + kLanes * pitch, pitch);
    }

    // Transposes x, since the words of a tile row must be contiguous. `rows` must be a multiple of 32.
    static Rows columns(const value* x, size_t rows, size_t columns, Scratch<word>& scratch) {
        word* to = scratch.get(rows / 2 * columns);
        const __m512i even = _mm512_set_epi16(62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40, 38, 36, 34, 32, 30, 28,
                                              26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
        const __m512i odd = _mm512_add_epi16(even, _mm512_set1_epi16(1));
        const word* from = reinterpret_cast<const word*>(x);
        vec above[kLanes], below[kLanes];
        for (size_t row = 0; row < rows; row += kBlock)
            for (size_t column = 0; column < columns; column += kBlock) {
                const word* block = from + (row * columns + column) / 2;
                transpose_words(block, columns / 2, above);
                transpose_words(block + kLanes * columns / 2, columns / 2, below);
                for (size_t i = 0; i < kLanes; ++i) {
                    word* at = to + ((column + 2 * i) * rows + row) / 2;
                    _mm512_storeu_si512(at, _mm512_permutex2var_epi16(bits(above[i]), even, bits(below[i])));
                    _mm512_storeu_si512(at + rows / 2,
                                        _mm512_permutex2var_epi16(bits(above[i]), odd, bits(below[i])));
                }
            }
        return {to, rows / 2, 1};
    }
};
