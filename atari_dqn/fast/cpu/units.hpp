// Microkernels for products of fp32 or bf16 vectors. Those for tile registers, the other unit, are in bf16.hpp.
#pragma once

#include <algorithm>
#include <type_traits>

#include "formats.hpp"

// The left operand of a product: row r begins at `at` + r · `pitch`, and its words are `step` words apart.
struct Rows {
    const word* at;
    size_t pitch, step;

    Rows from(size_t row) const { return {at + row * pitch, pitch, step}; }
    // The same rows, starting `words` words later.
    Rows after(size_t words) const { return {at + words, pitch, step}; }
    // The current word of a row.
    ALWAYS_INLINE const word* current(size_t row) const { return at + row * pitch; }
    ALWAYS_INLINE void advance() { at += step; }
};

// Rows given by pointers (an indirection buffer): word i of row r is pointers[r][offset + i].
struct IndirectRows {
    const word* const* pointers;
    size_t offset;

    IndirectRows from(size_t row) const { return {pointers + row, offset}; }
    IndirectRows after(size_t words) const { return {pointers, offset + words}; }
    ALWAYS_INLINE const word* current(size_t row) const { return pointers[row] + offset; }
    ALWAYS_INLINE void advance() { ++offset; }
};

// Columns of rows given by pointers, used as rows: word i of row r is pointers[i][offset + r].
struct IndirectColumns {
    const word* const* pointers;
    size_t offset;

    IndirectColumns from(size_t row) const { return {pointers, offset + row}; }
    IndirectColumns after(size_t words) const { return {pointers, offset + words}; }
    ALWAYS_INLINE const word* current(size_t row) const { return *pointers + offset + row; }
    ALWAYS_INLINE void advance() { ++pointers; }
};

// The summed dimension: `runs` contiguous runs of `words` words, which begin `run_stride` words apart.
struct Reduction {
    size_t words, runs = 1, run_stride = 0;
    bool accumulate = false;  // add to the existing sums
};

// A block of columns of the right operand, indexed by word: two packed panels, or rows `pitch` words apart.
struct InPanels {
    const word *panel, *next;

    ALWAYS_INLINE void load(size_t i, vec& x, vec& y) const {
        x = ::load(panel + i * kLanes), y = ::load(next + i * kLanes);
    }
};

struct InRows {
    const word* rows;
    size_t pitch;

    ALWAYS_INLINE void load(size_t i, vec& x, vec& y) const {
        const word* at = rows + i * pitch;
        x = ::load(at), y = ::load(at + kLanes);
    }
};

// As InRows, for rows outside the near caches: prefetches the next block of each.
struct InPrefetchedRows {
    const word* rows;
    size_t pitch;

    ALWAYS_INLINE void load(size_t i, vec& x, vec& y) const {
        InRows{rows, pitch}.load(i, x, y);
        prefetch(rows + i * pitch + kBlock), prefetch(rows + i * pitch + kBlock + kLanes);
    }
};

// Adds to `columns` the prefetching of lines that are read next, some with each word.
template <class Columns, class Lines>
struct Prefetching {
    Columns columns;
    Lines lines;

    ALWAYS_INLINE void load(size_t i, vec& x, vec& y) const {
        columns.load(i, x, y);
        lines.prefetch_for(i);
    }
};

// Calls `run` with `number`, from 1 to `kMax`, as a compile-time constant.
template <size_t kMax, class Run>
inline void with_constant(size_t number, Run run) {
    if constexpr (kMax > 0) {
        if (number == kMax)
            run(std::integral_constant<size_t, kMax>());
        else
            with_constant<kMax - 1>(number, run);
    }
}

template <class Format_>
struct Vectors {
    // Words of a sum per iteration, so that the branch predictor foresees the ends of short sums.
    static constexpr size_t kUnrolled = 4;
    using Format = Format_;
    using value = typename Format::value;
    static constexpr size_t kRows = 24;                        // pixels per block of an image, at most
    static constexpr size_t kFewRows = 8;                      // rows for which packing does not pay off
    static constexpr bool kTakesRows = Format::kPerWord == 1;  // whether the right operand may be in rows, unpacked

    // State that must exist while `products` is called for `rows` rows; vectors need none.
    struct Scope {
        explicit Scope(size_t) {}
    };

    // Multiplies `rows` rows with a block of columns in two panels: to[rows, kBlock].
    static void products(Rows a, size_t rows, Reduction reduction, const word* panel, const word* next, float* to,
                         size_t pitch) {
        products(a, rows, reduction, InPanels{panel, next}, to, pitch);
    }

    // As above for columns in any layout. The rows are split into register blocks of nearly equal size.
    template <class Left, class Columns>
    static void products(Left a, size_t rows, Reduction reduction, Columns columns, float* to, size_t pitch) {
        size_t groups = (rows + kRegisterRows - 1) / kRegisterRows;
        for (size_t row = 0, count; row < rows; row += count, --groups) {
            count = (rows - row + groups - 1) / groups;
            with_constant<kRegisterRows>(count, [&](auto constant) {
                sums<constant>(a.from(row), reduction, columns, to + row * pitch, pitch);
            });
        }
    }

    // As above for two operands of `rows` rows each.
    static void products(Rows a, Rows b, size_t rows, Reduction reduction, const word* panel, const word* next,
                         float* to_a, float* to_b, size_t pitch) {
        products(a, rows, reduction, panel, next, to_a, pitch);
        products(b, rows, reduction, panel, next, to_b, pitch);
    }

    // As above for kBlock rows, in four quarters, each of which prefetches a quarter of the lines.
    template <class Columns, class Lines>
    static void products(Rows a, Reduction reduction, Columns columns, Lines lines, float* to, size_t pitch) {
        if constexpr (!Lines::kAny) {
            products(a, kBlock, reduction, columns, to, pitch);
        } else {
            constexpr size_t kQuarter = kBlock / 4;
            for (size_t part = 0; part < 4; ++part)
                sums<kQuarter>(a.from(part * kQuarter), reduction,
                               Prefetching<Columns, Lines>{columns, lines.quarter(part)},
                               to + part * kQuarter * pitch, pitch);
        }
    }

    // Returns the columns of x [rows, columns] as the left operand of a product that sums over the rows.
    static Rows columns(const value* x, size_t rows, size_t columns, Scratch<word>& scratch) {
        if constexpr (Format::kPerWord == 1) {
            if (columns % 256) return {x, 1, columns};
            // Rows of such a length map to few sets of the L1 cache; they are spread by a line each.
            word* to = scratch.get(rows * (columns + kLine));
            for (size_t row = 0; row < rows; ++row)
                std::memcpy(to + row * (columns + kLine), x + row * columns, columns * sizeof *to);
            return {to, 1, columns + kLine};
        }
        word* to = scratch.get(rows / Format::kPerWord * columns);
        for (size_t row = 0; row < rows; row += Format::kPerWord)
            for (size_t at = 0; at < columns; at += kBlock)
                Format::pack(x + row * columns + at, x + (row + 1) * columns + at,
                             to + row / Format::kPerWord * columns + at, kLanes);
        return {to, 1, columns};
    }

  private:
    template <size_t kCount, class Left, class Columns>
    static void sums(Left a, Reduction reduction, Columns columns, float* to, size_t pitch) {
        vec first[kCount], second[kCount];
#pragma GCC unroll 16
        for (size_t row = 0; row < kCount; ++row) first[row] = second[row] = vec{};
        if (reduction.accumulate) {
#pragma GCC unroll 16
            for (size_t row = 0; row < kCount; ++row) Fp32::load(to + row * pitch, first[row], second[row]);
        }
        size_t column = 0;
        const auto add_next = [&](Left& words) __attribute__((always_inline)) {
            vec x, y;
            columns.load(column++, x, y);
#pragma GCC unroll 16
            for (size_t row = 0; row < kCount; ++row) {
                const vec each = broadcast(words.current(row));
                first[row] = Format::add_product(each, x, first[row]);
                second[row] = Format::add_product(each, y, second[row]);
            }
            words.advance();
        };
        for (size_t run = 0; run < reduction.runs; ++run) {
            Left words = a.after(run * reduction.run_stride);
            size_t i = 0;
            for (; i + kUnrolled <= reduction.words; i += kUnrolled)
#pragma GCC unroll 8
                for (size_t unrolled = 0; unrolled < kUnrolled; ++unrolled) add_next(words);
            for (; i < reduction.words; ++i) add_next(words);
        }
#pragma GCC unroll 16
        for (size_t row = 0; row < kCount; ++row) Fp32::store(to + row * pitch, first[row], second[row]);
    }
};
