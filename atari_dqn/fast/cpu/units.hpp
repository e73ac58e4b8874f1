// What adds up products: vectors of 16 numbers (AVX-512), in fp32 or bf16, or tile registers (AMX), in bf16.
#pragma once

#include <algorithm>
#include <type_traits>

#include "formats.hpp"

// The words of one side of a product: those of row r begin at `at` + r `pitch`, and go on every `step` words.
struct Rows {
    const word* at;
    size_t pitch, step;

    Rows from(size_t row) const { return {at + row * pitch, pitch, step}; }
};

// What a sum goes along: `runs` pieces of `words` words, each `apart` words after the one before.
struct Way {
    size_t words, runs = 1, apart = 0;
    bool onward = false;  // adds to the sums that are there
};

// 32 columns of the other side, word after word: in two panels; in rows that lie `pitch` words apart, and whose next
// 32 columns are asked for next; or each at a place of its own.
struct InPanels {
    const word *panel, *next;

    void load(size_t i, __m512& x, __m512& y) const {
        x = _mm512_loadu_ps(panel + i * kSide), y = _mm512_loadu_ps(next + i * kSide);
    }
};

struct InRows {
    const word* rows;
    size_t pitch;

    void load(size_t i, __m512& x, __m512& y) const {
        const word* at = rows + i * pitch;
        x = _mm512_loadu_ps(at), y = _mm512_loadu_ps(at + kSide);
        ask_for(at + kBlock), ask_for(at + kBlock + kSide);
    }
};

struct AtPlaces {
    const word* const* places;
    size_t offset;

    void load(size_t i, __m512& x, __m512& y) const {
        const word* at = places[i] + offset;
        x = _mm512_loadu_ps(at), y = _mm512_loadu_ps(at + kSide);
    }
};

// Columns as they are; with each word some of what is to be read next is asked for.
template <class Columns, class Lines>
struct Asking {
    Columns columns;
    Lines lines;

    ALWAYS_INLINE void load(size_t i, __m512& x, __m512& y) const {
        columns.load(i, x, y);
        lines.ask(i);
    }
};

// Calls `run` with a number from 1 to `kMost` as a constant of its type.
template <size_t kMost, class Run>
inline void with_constant(size_t number, Run run) {
    if constexpr (kMost > 0) {
        if (number == kMost)
            run(std::integral_constant<size_t, kMost>());
        else
            with_constant<kMost - 1>(number, run);
    }
}

template <class Format_>
struct Vectors {
    using Format = Format_;
    using value = typename Format::value;
    static constexpr size_t kRows = 12;  // whose sums, two vectors each, fit into 32 registers
    static constexpr size_t kFew = 8;    // rows that are not worth panels
    static constexpr bool kTakesRows = Format::kPerWord == 1;  // columns need not be in panels

    // What must be while `products` is called for as many rows.
    struct Scope {
        explicit Scope(size_t) {}
    };

    // Up to 16 rows times 32 columns in two panels.
    static void products(Rows a, size_t rows, Way way, const word* panel, const word* next, float* to, size_t pitch) {
        products(a, rows, way, InPanels{panel, next}, to, pitch);
    }

    // Any number of rows times 32 columns.
    template <class Columns>
    static void products(Rows a, size_t rows, Way way, Columns columns, float* to, size_t pitch) {
        const size_t groups = (rows + kRows - 1) / kRows, each = (rows + groups - 1) / groups;
        for (size_t row = 0; row < rows; row += each)
            with_constant<kRows>(std::min(each, rows - row), [&](auto count) {
                sums<count>(a.from(row), way, columns, to + row * pitch, pitch);
            });
    }

    // The same of two times as many rows.
    static void products(Rows a, Rows b, size_t rows, Way way, const word* panel, const word* next, float* to_a,
                         float* to_b, size_t pitch) {
        products(a, rows, way, panel, next, to_a, pitch);
        products(b, rows, way, panel, next, to_b, pitch);
    }

    // The same of 32 rows, a quarter at a time, each of which asks for a quarter of the lines.
    template <class Columns, class Lines>
    static void products(Rows a, Way way, Columns columns, Lines lines, float* to, size_t pitch) {
        constexpr size_t kQuarter = kBlock / 4;
        for (size_t part = 0; part < 4; ++part)
            sums<kQuarter>(a.from(part * kQuarter), way, Asking<Columns, Lines>{columns, lines.quarter(part)},
                           to + part * kQuarter * pitch, pitch);
    }

    // The columns of `rows` × `columns` values as rows of a product along the rows.
    static Rows columns(const value* x, size_t rows, size_t columns, Scratch<word>& scratch) {
        if constexpr (Format::kPerWord == 1) return {reinterpret_cast<const word*>(x), 1, columns};
        word* to = scratch.of(rows / Format::kPerWord * columns);
        for (size_t row = 0; row < rows; row += Format::kPerWord)
            for (size_t at = 0; at < columns; at += kBlock)
                Format::place(x + row * columns + at, x + (row + 1) * columns + at,
                              to + row / Format::kPerWord * columns + at, kSide);
        return {to, 1, columns};
    }

  private:
    template <size_t kRows, class Columns>
    static void sums(Rows a, Way way, Columns columns, float* to, size_t pitch) {
        __m512 left[kRows], right[kRows];
#pragma GCC unroll 16
        for (size_t row = 0; row < kRows; ++row) left[row] = right[row] = _mm512_setzero_ps();
        if (way.onward) {
#pragma GCC unroll 16
            for (size_t row = 0; row < kRows; ++row) Fp32::load(to + row * pitch, left[row], right[row]);
        }
        for (size_t run = 0, column = 0; run < way.runs; ++run) {
            const word* at = a.at + run * way.apart;
            for (size_t i = 0; i < way.words; ++i, ++column, at += a.step) {
                __m512 x, y;
                columns.load(column, x, y);
#pragma GCC unroll 16
                for (size_t row = 0; row < kRows; ++row) {
                    const __m512 each = repeated(at + row * a.pitch);
                    left[row] = Format::add_product(each, x, left[row]);
                    right[row] = Format::add_product(each, y, right[row]);
                }
            }
        }
#pragma GCC unroll 16
        for (size_t row = 0; row < kRows; ++row) Fp32::store(to + row * pitch, left[row], right[row]);
    }
};

// A tile of A holds 16 rows of 16 words, one of B 16 words of a panel, one of sums 16 × 16 fp32 values.
struct Tiles {
    using Format = Bf16;
    using value = bf16;
    static constexpr size_t kRows = 16, kFew = 8;
    static constexpr bool kTakesRows = false;

    // Has everything be stored that tiles are about to read: the compiler is not told by their intrinsics.
    static void tell_the_compiler() { asm volatile("" ::: "memory"); }

    // Sets the tile registers up for this thread while it lives: 0 to 3 sums, 4 and 5 of A, 6 and 7 of B.
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
                layout.rows[tile] = static_cast<std::uint8_t>(tile < 6 ? rows : kSide);
            }
            tell_the_compiler();
            _tile_loadconfig(&layout);
        }
        Scope(const Scope&) = delete;
        ~Scope() { _tile_release(); }
    };

    static void products(Rows a, size_t, Way way, const word* panel, const word* next, float* to, size_t pitch) {
        const size_t bytes = a.pitch * sizeof(word), sum_bytes = pitch * sizeof(float);
        tell_the_compiler();
        if (way.onward) {
            _tile_loadd(0, to, sum_bytes);
            _tile_loadd(1, to + kSide, sum_bytes);
        } else {
            _tile_zero(0);
            _tile_zero(1);
        }
        for (size_t run = 0; run < way.runs; ++run) {
            const word* from = a.at + run * way.apart;
            for (size_t i = 0; i < way.words; i += kSide, panel += kSide * kSide, next += kSide * kSide) {
                _tile_loadd(4, from + i, bytes);
                _tile_loadd(6, panel, 64);
                _tile_dpbf16ps(0, 4, 6);
                _tile_loadd(7, next, 64);
                _tile_dpbf16ps(1, 4, 7);
            }
        }
        _tile_stored(0, to, sum_bytes);
        _tile_stored(1, to + kSide, sum_bytes);
    }

    static void products(Rows a, Rows b, size_t, Way way, const word* panel, const word* next, float* to_a,
                         float* to_b, size_t pitch) {
        const size_t bytes = a.pitch * sizeof(word), sum_bytes = pitch * sizeof(float);
        tell_the_compiler();
        if (way.onward) {
            _tile_loadd(0, to_a, sum_bytes);
            _tile_loadd(1, to_a + kSide, sum_bytes);
            _tile_loadd(2, to_b, sum_bytes);
            _tile_loadd(3, to_b + kSide, sum_bytes);
        } else {
            _tile_zero(0);
            _tile_zero(1);
            _tile_zero(2);
            _tile_zero(3);
        }
        for (size_t run = 0; run < way.runs; ++run) {
            const word *first = a.at + run * way.apart, *second = b.at + run * way.apart;
            for (size_t i = 0; i < way.words; i += kSide, panel += kSide * kSide, next += kSide * kSide) {
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
        _tile_stored(1, to_a + kSide, sum_bytes);
        _tile_stored(2, to_b, sum_bytes);
        _tile_stored(3, to_b + kSide, sum_bytes);
    }

    // The same of 32 rows. Nothing is asked for: a tile's words come from many lines as it is.
    template <class Lines>
    static void products(Rows a, Way way, InPanels columns, Lines, float* to, size_t pitch) {
        products(a, a.from(kSide), kSide, way, columns.panel, columns.next, to, to + kSide * pitch, pitch);
    }

    // A tile wants the words of a row side by side: the transpose. Rows a multiple of 32.
    static Rows columns(const value* x, size_t rows, size_t columns, Scratch<word>& scratch) {
        word* to = scratch.of(rows / 2 * columns);
        const __m512i even = _mm512_set_epi16(
            62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40, 38, 36, 34, 32, 30, 28, 26, 24, 22, 20, 18, 16, 14, 12,
            10, 8, 6, 4, 2, 0);
        const __m512i odd = _mm512_add_epi16(even, _mm512_set1_epi16(1));
        const word* from = reinterpret_cast<const word*>(x);
        __m512i above[kSide], below[kSide];
        for (size_t row = 0; row < rows; row += kBlock)
            for (size_t column = 0; column < columns; column += kBlock) {
                const word* block = from + (row * columns + column) / 2;
                transpose_words(block, columns / 2, above);
                transpose_words(block + kSide * columns / 2, columns / 2, below);
                for (size_t i = 0; i < kSide; ++i) {
                    word* at = to + ((column + 2 * i) * rows + row) / 2;
                    _mm512_storeu_si512(at, _mm512_permutex2var_epi16(above[i], even, below[i]));
                    _mm512_storeu_si512(at + rows / 2, _mm512_permutex2var_epi16(above[i], odd, below[i]));
                }
            }
        return {to, rows / 2, 1};
    }
};

// The units by number, as Python names them.
enum Unit { kVectorsFp32, kVectorsBf16, kTilesBf16 };

// Calls `run` with the unit of that number.
template <class Run>
void with_unit(int unit, Run run) {
    if (unit == kVectorsFp32) run(Vectors<Fp32>());
    if (unit == kVectorsBf16) run(Vectors<Bf16>());
    if (unit == kTilesBf16) run(Tiles());
}
