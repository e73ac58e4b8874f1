// What adds up products: vectors, in fp32 or bf16. Tile registers, the other unit, are in bf16.hpp.
#pragma once

#include <algorithm>
#include <type_traits>

#include "formats.hpp"

// The words of one side of a product: those of row r begin at `at` + r `pitch`, and go on every `step` words.
struct Rows {
    const word* at;
    size_t pitch, step;

    Rows from(size_t row) const { return {at + row * pitch, pitch, step}; }
    // The same rows from word `words` on.
    Rows after(size_t words) const { return {at + words, pitch, step}; }
    // The word of a row that is next.
    ALWAYS_INLINE const word* next_of(size_t row) const { return at + row * pitch; }
    ALWAYS_INLINE void go_on() { at += step; }
};

// Rows that begin at any places: word i of row r is at places[r] + `offset` + i.
struct RowsAtPlaces {
    const word* const* places;
    size_t offset;

    RowsAtPlaces from(size_t row) const { return {places + row, offset}; }
    RowsAtPlaces after(size_t words) const { return {places, offset + words}; }
    ALWAYS_INLINE const word* next_of(size_t row) const { return places[row] + offset; }
    ALWAYS_INLINE void go_on() { ++offset; }
};

// The columns of rows that begin at any places, taken as rows: word i of row r is at places[i] + `offset` + r.
struct ColumnsAtPlaces {
    const word* const* places;
    size_t offset;

    ColumnsAtPlaces from(size_t row) const { return {places, offset + row}; }
    ColumnsAtPlaces after(size_t words) const { return {places, offset + words}; }
    ALWAYS_INLINE const word* next_of(size_t row) const { return *places + offset + row; }
    ALWAYS_INLINE void go_on() { ++places; }
};

// What a sum goes along: `runs` pieces of `words` words, each `apart` words after the one before.
struct Way {
    size_t words, runs = 1, apart = 0;
    bool onward = false;  // adds to the sums that are there
};

// A block of columns of the other side, word after word: in two panels, or in rows that lie `pitch` words apart.
struct InPanels {
    const word *panel, *next;

    ALWAYS_INLINE void load(size_t i, vec& x, vec& y) const {
        x = ::load(panel + i * kSide), y = ::load(next + i * kSide);
    }
};

struct InRows {
    const word* rows;
    size_t pitch;

    ALWAYS_INLINE void load(size_t i, vec& x, vec& y) const {
        const word* at = rows + i * pitch;
        x = ::load(at), y = ::load(at + kSide);
    }
};

// The same of rows that are not in a near cache: the next block of each is prefetched.
struct InPrefetchedRows {
    const word* rows;
    size_t pitch;

    ALWAYS_INLINE void load(size_t i, vec& x, vec& y) const {
        InRows{rows, pitch}.load(i, x, y);
        prefetch(rows + i * pitch + kBlock), prefetch(rows + i * pitch + kBlock + kSide);
    }
};

// Columns as they are; with each word some of the lines that are read next are prefetched.
template <class Columns, class Lines>
struct Prefetching {
    Columns columns;
    Lines lines;

    ALWAYS_INLINE void load(size_t i, vec& x, vec& y) const {
        columns.load(i, x, y);
        lines.prefetch_for(i);
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
    static constexpr size_t kUnrolled = 4;  // words of a sum at a time: a processor then foresees where short sums end
    using Format = Format_;
    using value = typename Format::value;
    static constexpr size_t kRows = 24;  // pixels of a block of an image, at most
    static constexpr size_t kFew = 8;    // rows that are not worth panels
    static constexpr bool kTakesRows = Format::kPerWord == 1;  // columns need not be in panels

    // What must exist while `products` is called for as many rows.
    struct Scope {
        explicit Scope(size_t) {}
    };

    // Any number of rows times a block of columns in two panels.
    static void products(Rows a, size_t rows, Way way, const word* panel, const word* next, float* to, size_t pitch) {
        products(a, rows, way, InPanels{panel, next}, to, pitch);
    }

    // The same of any columns, in groups of rows that are as equal as can be.
    template <class Left, class Columns>
    static void products(Left a, size_t rows, Way way, Columns columns, float* to, size_t pitch) {
        size_t groups = (rows + kRegisterRows - 1) / kRegisterRows;
        for (size_t row = 0, count; row < rows; row += count, --groups) {
            count = (rows - row + groups - 1) / groups;
            with_constant<kRegisterRows>(count, [&](auto constant) {
                sums<constant>(a.from(row), way, columns, to + row * pitch, pitch);
            });
        }
    }

    // The same of two times as many rows.
    static void products(Rows a, Rows b, size_t rows, Way way, const word* panel, const word* next, float* to_a,
                         float* to_b, size_t pitch) {
        products(a, rows, way, panel, next, to_a, pitch);
        products(b, rows, way, panel, next, to_b, pitch);
    }

    // The same of as many rows as a block has columns, a quarter at a time, each of which prefetches a quarter of the
    // lines.
    template <class Columns, class Lines>
    static void products(Rows a, Way way, Columns columns, Lines lines, float* to, size_t pitch) {
        if constexpr (!Lines::kAny) {
            products(a, kBlock, way, columns, to, pitch);
        } else {
            constexpr size_t kQuarter = kBlock / 4;
            for (size_t part = 0; part < 4; ++part)
                sums<kQuarter>(a.from(part * kQuarter), way, Prefetching<Columns, Lines>{columns, lines.quarter(part)},
                               to + part * kQuarter * pitch, pitch);
        }
    }

    // The columns of `rows` × `columns` values as rows of a product along the rows.
    static Rows columns(const value* x, size_t rows, size_t columns, Scratch<word>& scratch) {
        if constexpr (Format::kPerWord == 1) {
            if (columns % 256) return {x, 1, columns};
            // rows of such a length would lie in few of the nearest cache's sets: they are moved apart
            word* to = scratch.of(rows * (columns + kLine));
            for (size_t row = 0; row < rows; ++row)
                std::memcpy(to + row * (columns + kLine), x + row * columns, columns * sizeof *to);
            return {to, 1, columns + kLine};
        }
        word* to = scratch.of(rows / Format::kPerWord * columns);
        for (size_t row = 0; row < rows; row += Format::kPerWord)
            for (size_t at = 0; at < columns; at += kBlock)
                Format::place(x + row * columns + at, x + (row + 1) * columns + at,
                              to + row / Format::kPerWord * columns + at, kSide);
        return {to, 1, columns};
    }

  private:
    template <size_t kCount, class Left, class Columns>
    static void sums(Left a, Way way, Columns columns, float* to, size_t pitch) {
        vec left[kCount], right[kCount];
#pragma GCC unroll 16
        for (size_t row = 0; row < kCount; ++row) left[row] = right[row] = vec{};
        if (way.onward) {
#pragma GCC unroll 16
            for (size_t row = 0; row < kCount; ++row) Fp32::load(to + row * pitch, left[row], right[row]);
        }
        size_t column = 0;
        const auto add_next = [&](Left& along) __attribute__((always_inline)) {
            vec x, y;
            columns.load(column++, x, y);
#pragma GCC unroll 16
            for (size_t row = 0; row < kCount; ++row) {
                const vec each = repeated(along.next_of(row));
                left[row] = Format::add_product(each, x, left[row]);
                right[row] = Format::add_product(each, y, right[row]);
            }
            along.go_on();
        };
        for (size_t run = 0; run < way.runs; ++run) {
            Left along = a.after(run * way.apart);
            size_t i = 0;
            for (; i + kUnrolled <= way.words; i += kUnrolled)
#pragma GCC unroll 8
                for (size_t more = 0; more < kUnrolled; ++more) add_next(along);
            for (; i < way.words; ++i) add_next(along);
        }
#pragma GCC unroll 16
        for (size_t row = 0; row < kCount; ++row) Fp32::store(to + row * pitch, left[row], right[row]);
    }
};
