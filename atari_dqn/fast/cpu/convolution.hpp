// Convolutions of channels-last images, forward and backward, an image at a time in a core's own cache.
//
// A row of a kernel lies in one piece in such an image. In fp32 the patches of the output's pixels are multiplied where
// they lie, and equal neighbours only once. In bf16 the pixels of a row of the output are multiplied together, which read
// pieces that are equally far apart, but short rows are copied together. Backward, the weights' gradient is a product of
// the upstream gradient and all that each kernel row read; the input's is made kernel row by kernel row and added up.
//
// A multiple of kBlock: the filters and, but of a network's first layer in fp32, the values of a kernel's row. Channels:
// even.
#pragma once

#include <algorithm>

#include "dispatch.hpp"
#include "patch_groups.hpp"

namespace {

constexpr size_t kSegment = 256;  // pixels whose gradients are multiplied while they stay in a core's cache
constexpr size_t kChunk = 8;  // images whose gradients of weights are summed together, whatever the threads

template <class Unit>
struct Memory {
    using value = typename Unit::value;
    Scratch<word> gradient_columns, patches;
    Scratch<value> images, gradient, gathered;
    Scratch<float> columns, sum;
    Scratch<const value*> places;
};

// Stores the inside of a sum with zeros around it.
template <class Format>
void store_inside(const Shape& shape, const float* sum, typename Format::value* to) {
    for (size_t row = 0; row < shape.height; ++row, to += shape.row()) {
        const float* from = sum + shape.inside() + row * shape.pitch();
        for (size_t at = 0; at < shape.row(); at += kSide) {
            vec some{};
            const size_t left = std::min(shape.row() - at, kSide);
            std::memcpy(&some, from + at, left * sizeof *from);
            Format::store_some(to + at, left, some);
        }
    }
}

// Rows of `width` pixels in equal blocks of as many as a unit takes, of which a row's last may overlap the one before.
struct Blocks {
    Blocks(size_t height, size_t width, size_t most)
        : across((width + most - 1) / most), pixels((width + across - 1) / across), count(height * across),
          width(width) {}

    size_t first_pixel(size_t block) const {
        return block / across * width + std::min(block % across * pixels, width - pixels);
    }

    const size_t across, pixels, count, width;
};

template <class Unit>
Blocks blocks_of(const Shape& shape) {
    if (shape.has_short_rows()) return Blocks(1, shape.pixels(), Unit::kRows);
    return Blocks(shape.out_height(), shape.out_width(), Unit::kRows);
}

// The patches of the output's pixels in an image with its zeros, for units that take blocks: in place or, of short rows, one
// behind another.
template <class Unit>
class Patches {
    using value = typename Unit::value;
    static constexpr size_t kPerWord = Unit::Format::kPerWord;

  public:
    Patches(const Shape& shape, const value* in) : shape_(shape), at_(shape.has_short_rows() ? gathered(in) : in) {}

    // The patches of pixels that follow each other, from `pixel` on.
    Rows from(size_t pixel) const {
        if (shape_.has_short_rows()) return rows(pixel * shape_.kernel(), shape_.kernel());
        return rows(shape_.patch(pixel), shape_.stride * shape_.channels);
    }
    // What a sum over one patch goes along.
    Way way() const {
        if (shape_.has_short_rows()) return {shape_.kernel() / kPerWord};
        return {shape_.kernel_row() / kPerWord, shape_.kernel_height, shape_.pitch() / kPerWord};
    }

  private:
    Rows rows(size_t begin, size_t apart) const {
        return {reinterpret_cast<const word*>(at_ + begin), apart / kPerWord, 1};
    }
    const value* gathered(const value* in) const {
        value* const first = kept<Memory<Unit>>().gathered.of(shape_.pixels() * shape_.kernel());
        value* to = first;
        for (size_t pixel = 0; pixel < shape_.pixels(); ++pixel)
            for (size_t high = 0; high < shape_.kernel_height; ++high, to += shape_.kernel_row())
                std::copy_n(in + shape_.patch(pixel) + high * shape_.pitch(), shape_.kernel_row(), to);
        return first;
    }

    const Shape& shape_;
    const value* at_;
};

// The gradients that some images give.
template <class Unit>
class Backward {
    using Format = typename Unit::Format;
    using value = typename Unit::value;
    static constexpr size_t kPerWord = Format::kPerWord;

  public:
    // Of up to kChunk images that lie at `x`, with their zeros or without.
    Backward(const Shape& shape, const value* x, size_t images, bool have_zeros = false)
        : shape_(shape), images_(images), rows_(images * shape.pixels()), padded_(round_up(rows_, kBlock)),
          x_(x), pads_(shape.pads() && !have_zeros) {}

    // Takes what the ReLU behind the output let through of an upstream gradient; all of it if `output` is null.
    void take(const value* output, const value* upstream) {
        const size_t values = rows_ * shape_.filters;
        const size_t room = padded_ * shape_.filters;
        gradient_ = memory_.gradient.of(room);
        keep<Format>(output, upstream, values, gradient_);
        std::memset(gradient_ + values, 0, (room - values) * sizeof(value));
    }

    // Adds up the gradients of each group of equal patches, which is one row from then on; for units that take rows, and
    // after `of_x`, which needs each pixel's. `groups_of` gives the groups of an image.
    template <class GroupsOf>
    void merge(const GroupsOf& groups_of) {
        rows_ = 0;
        for (size_t image = 0; image < images_; ++image) {
            const PatchGroups* groups = groups_[image] = &groups_of(image);
            groups->sum(gradient_ + image * shape_.out(), shape_.filters, gradient_ + rows_ * shape_.filters);
            rows_ += groups->count();
        }
    }

    // Of the weights, filter by filter or, where the unit takes rows, a kernel's value after another, for all filters each;
    // and of the biases. They are added to what is there if `onward`.
    void of_weight(float* weight, float* bias, bool onward) {
        const size_t filters = shape_.filters, row = shape_.kernel_row(), words = padded_ / kPerWord;
        sum_rows<Format>(gradient_, rows_, filters, bias, onward);
        const value** places = patch_places();
        if constexpr (Unit::kTakesRows) {
            for (size_t begin = 0; begin < rows_; begin += kSegment)
                for (size_t high = 0; high < shape_.kernel_height; ++high)
                    for (size_t filter = 0; filter < filters; filter += kBlock)
                        Unit::products(ColumnsAtPlaces{places + begin, high * shape_.pitch()}, row,
                                       {std::min(kSegment, rows_ - begin), 1, 0, onward || begin > 0},
                                       InRows{gradient_ + begin * filters + filter, filters},
                                       weight + high * row * filters + filter, filters);
            return;
        }
        const typename Unit::Scope scope(kSide);
        const Rows gradient = Unit::columns(gradient_, padded_, filters, memory_.gradient_columns);
        word* patches = memory_.patches.of(words * row);
        for (size_t high = 0; high < shape_.kernel_height; ++high) {
            for (size_t i = 0; i < words; ++i) {
                const value* a = places[i * kPerWord] + high * shape_.pitch();
                const value* b = places[i * kPerWord + kPerWord - 1] + high * shape_.pitch();
                for (size_t at = 0; at < row; at += kBlock)
                    Format::place(a + at, b + at, patches + at * words + i * kSide, words * kSide);
            }
            for (size_t column = 0; column < row; column += kBlock)
                for (size_t filter = 0; filter < filters; filter += kBlock) {
                    const word* panel = patches + column * words;
                    float* to = weight + filter * shape_.kernel() + high * row + column;
                    Unit::products(gradient.from(filter), gradient.from(filter + kSide), kSide, {words, 1, 0, onward},
                                   panel, panel + words * kSide, to, to + kSide * shape_.kernel(), shape_.kernel());
                }
        }
    }

    // `panels` are the weights as `pack_transposed` has them.
    void of_x(const word* panels, value* to) {
        for (size_t image = 0; image < images_; ++image, to += shape_.image()) {
            const value* gradient = gradient_ + image * shape_.out();
            const bool by_rows = Unit::kTakesRows && !shape_.has_short_rows();
            const bool in_place = Unit::kTakesRows && !shape_.pads();
            float* sum = in_place ? reinterpret_cast<float*>(to) : memory_.sum.of(shape_.padded());
            std::memset(sum, 0, shape_.padded() * sizeof(float));
            if constexpr (Unit::kTakesRows) {
                if (by_rows) add_rows(gradient, panels, sum);
            }
            if (!by_rows) add_blocks(gradient, panels, sum);
            if (!in_place) store_inside<Format>(shape_, sum, to);
        }
    }

  private:
    // Adds what the pixels of the output give to the gradient of their patches: a row of them, for one block of a
    // kernel row, at a time: no two of them meet in one place, since whole blocks of channels are between them.
    // Flattened: sums are short, and calls of `products` would take a twelfth of the time.
    __attribute__((flatten)) void add_rows(const value* gradient, const word* panels, float* sum) {
        const size_t row = shape_.kernel_row(), words = shape_.filters, width = shape_.out_width();
        const size_t apart = shape_.stride * shape_.channels;
        for (size_t high = 0; high < shape_.kernel_height; ++high, sum += shape_.pitch())
            for (size_t column = 0; column < row; column += kBlock, panels += kBlock * words)
                for (size_t pixel = 0; pixel < shape_.pixels(); pixel += width)
                    Unit::products({gradient + pixel * words, words, 1}, width, {words, 1, 0, true}, panels,
                                   panels + words * kSide, sum + shape_.patch(pixel) + column, apart);
    }

    // The same for units that sum up blocks of a size, and for short rows: through a buffer, a pair of blocks at a time.
    void add_blocks(const value* from, const word* panels, float* sum) {
        const size_t row = shape_.kernel_row(), words = shape_.filters / kPerWord;
        const Blocks blocks(1, shape_.pixels(), Unit::kRows);
        const size_t block_size = blocks.pixels * row;
        const typename Unit::Scope scope(blocks.pixels);
        const Rows gradient{reinterpret_cast<const word*>(from), words, 1};
        float* columns = memory_.columns.of(2 * block_size);
        for (size_t high = 0; high < shape_.kernel_height; ++high, sum += shape_.pitch(), panels += row * words)
            for (size_t block = 0, done = 0; block < blocks.count; block += 2) {
                const size_t count = std::min<size_t>(2, blocks.count - block);
                const size_t firsts[] = {blocks.first_pixel(block), blocks.first_pixel(block + count - 1)};
                for (size_t column = 0; column < row; column += kBlock) {
                    const word* panel = panels + column * words;
                    float* to = columns + column;
                    if (count == 2)
                        Unit::products(gradient.from(firsts[0]), gradient.from(firsts[1]), blocks.pixels, {words},
                                       panel, panel + words * kSide, to, to + block_size, row);
                    else
                        Unit::products(gradient.from(firsts[0]), blocks.pixels, {words}, panel, panel + words * kSide,
                                       to, row);
                }
                for (size_t i = 0; i < count; ++i)
                    for (const size_t end = firsts[i] + blocks.pixels; done < end; ++done) {
                        float* at = sum + shape_.patch(done);
                        const float* more = columns + i * block_size + (done - firsts[i]) * row;
                        for (size_t j = 0; j < row; j += kSide) store(at + j, load(at + j) + load(more + j));
                    }
            }
    }

    // Where the patch of each row of the gradient begins; for units that take blocks, also of the rows of 0 behind the last.
    const value** patch_places() {
        const value** places = memory_.places.of(padded_);
        const value** to = places;
        value* padded = pads_ ? memory_.images.of(shape_.padded() * images_) : nullptr;
        for (size_t image = 0; image < images_; ++image) {
            const value* in = x_ + image * (pads_ ? shape_.image() : shape_.padded());
            if (pads_) {
                value* with = padded + image * shape_.padded();
                add_zeros(shape_, in, with);
                in = with;
            }
            if (const PatchGroups* groups = groups_[image])
                for (size_t group = 0; group < groups->count(); ++group) *to++ = in + groups->place(group);
            else
                for_each_patch(shape_, [&](size_t, size_t place) { *to++ = in + place; });
        }
        std::fill(places + rows_, places + padded_, places[0]);
        return places;
    }

    const Shape& shape_;
    const size_t images_;
    size_t rows_;  // of the gradient: one for each pixel or, once they are merged, for each group
    const size_t padded_;
    const value* x_;
    const bool pads_;
    const PatchGroups* groups_[kChunk] = {};  // of each image, once they are merged
    Memory<Unit>& memory_ = kept<Memory<Unit>>();
    value* gradient_ = nullptr;
};

// Stores sums, `rows` of kBlock, plus the bias, behind a ReLU.
template <class Format>
void store_finished(const float* sums, size_t rows, const float* bias, typename Format::value* y, size_t pitch) {
    const Finish<Format> finish(bias, true);
    for (size_t row = 0; row < rows; ++row)
        finish.store(load(sums + row * kBlock), load(sums + row * kBlock + kSide), y + row * pitch);
}

// The weights of 16 filters of a layer as their panel, for the convolution of images.
template <class Unit>
void pack(const Shape& shape, const typename Unit::value* weight, size_t filter, word* panels) {
    const size_t words = shape.kernel() / Unit::Format::kPerWord;
    panel_of_rows(weight + filter * shape.kernel(), shape.kernel(), words, panels + filter * words);
}

// The convolution of the first patches of groups in one image with its zeros, behind a ReLU, part `part` of `parts`; for
// units that take rows.
template <class Unit>
void convolve_groups(const Shape& shape, const PatchGroups& groups, const typename Unit::value* in, const word* panels,
                     const float* bias, typename Unit::value* y, size_t part, size_t parts) {
    using Format = typename Unit::Format;
    const size_t filters = shape.filters, pieces = (groups.count() + kRegisterRows - 1) / kRegisterRows;
    const size_t first = pieces * part / parts * kRegisterRows;
    const size_t end = std::min(pieces * (part + 1) / parts * kRegisterRows, groups.count());
    const Way way{shape.kernel_row(), shape.kernel_height, shape.pitch()};
    const word* places[Unit::kRows];
    alignas(64) float sums[Unit::kRows * kBlock];
    for (size_t filter = 0; filter < filters; filter += kBlock) {  // whose weights stay in the nearest cache
        const word* panel = panels + filter * shape.kernel();
        const Finish<Format> finish(bias + filter, true);
        for (size_t begin = first; begin < end; begin += Unit::kRows) {
            const size_t count = std::min(Unit::kRows, end - begin);
            for (size_t i = 0; i < count; ++i) places[i] = in + groups.place(begin + i);
            Unit::products(RowsAtPlaces{places, 0}, count, way, InPanels{panel, panel + shape.kernel() * kSide}, sums,
                           kBlock);
            for (size_t i = 0; i < count; ++i)
                finish.store(load(sums + i * kBlock), load(sums + i * kBlock + kSide),
                             y + groups.first_pixel(begin + i) * filters + filter);
        }
    }
}

// The convolution of one image with its zeros, behind a ReLU, part `part` of `parts`; for units that take blocks, within
// Unit::Scope(blocks_of<Unit>(shape).pixels).
template <class Unit>
void convolve_image(const Shape& shape, const typename Unit::value* in, const word* panels, const float* bias,
                    typename Unit::value* y, size_t part, size_t parts) {
    using Format = typename Unit::Format;
    const size_t filters = shape.filters, words = shape.kernel() / Format::kPerWord;
    const Blocks blocks = blocks_of<Unit>(shape);
    const size_t begin = blocks.count * part / parts, end = blocks.count * (part + 1) / parts;
    if (begin == end) return;
    const Patches<Unit> patches(shape, in);
    const Way way = patches.way();
    alignas(64) float sums[2][Unit::kRows * kBlock];
    for (size_t filter = 0; filter < filters; filter += kBlock)  // whose weights stay in the nearest cache
        for (size_t block = begin; block < end; block += 2) {
            const size_t count = std::min<size_t>(2, end - block);
            const size_t pixels[] = {blocks.first_pixel(block), blocks.first_pixel(block + count - 1)};
            const Rows rows[] = {patches.from(pixels[0]), patches.from(pixels[1])};
            const word* panel = panels + filter * words;
            if (count == 2)
                Unit::products(rows[0], rows[1], blocks.pixels, way, panel, panel + words * kSide, sums[0], sums[1],
                               kBlock);
            else
                Unit::products(rows[0], blocks.pixels, way, panel, panel + words * kSide, sums[0], kBlock);
            for (size_t i = 0; i < count; ++i)
                store_finished<Format>(sums[i], blocks.pixels, bias + filter, y + pixels[i] * filters + filter, filters);
        }
}

// The weights of a layer in panels, for Backward::of_x.
template <class Unit>
void pack_transposed(const Shape& shape, const typename Unit::value* weight, word* panels) {
    constexpr size_t kPerWord = Unit::Format::kPerWord;
    const size_t kernel = shape.kernel(), words = shape.filters / kPerWord;
    for (size_t i = 0; i < words; ++i)
        for (size_t at = 0; at < kernel; at += kBlock)
            Unit::Format::place(weight + i * kPerWord * kernel + at, weight + (i * kPerWord + kPerWord - 1) * kernel + at,
                                panels + at * words + i * kSide, words * kSide);
}

// A layer's gradient from where `of_weight` left it, to filter by filter.
template <class Unit>
void copy_gradient(const Shape& shape, const float* from, float* to) {
    const size_t filters = shape.filters, kernel = shape.kernel();
    if constexpr (!Unit::kTakesRows) {
        std::memcpy(to, from, filters * kernel * sizeof *to);
        return;
    }
    for_each_piece(filters / kSide, [&](size_t piece) {
        const size_t filter = piece * kSide;
        vec block[kSide];
        size_t k = 0;
        for (; k + kSide <= kernel; k += kSide) {
            transpose_words(from + k * filters + filter, filters, block);
            for (size_t i = 0; i < kSide; ++i) store(to + (filter + i) * kernel + k, block[i]);
        }
        for (; k < kernel; ++k)
            for (size_t i = 0; i < kSide; ++i) to[(filter + i) * kernel + k] = from[k * filters + filter + i];
    });
}

// Adds up gradients of weights and biases, `size` numbers a chunk, in the chunks' order, into the first's.
inline void add_up(float* partial, size_t chunks, size_t size) {
    constexpr size_t kPiece = 4096;
    for_each_piece((size + kPiece - 1) / kPiece, [&](size_t piece) {
        const size_t begin = piece * kPiece, end = std::min(begin + kPiece, size);
        for (size_t chunk = 1; chunk < chunks; ++chunk)
            for (size_t i = begin; i < end; ++i) partial[i] += partial[chunk * size + i];
    });
}

}  // namespace
