// Convolutions of channels-last images, forward and backward, one image at a time in the cache of one core.
//
// In this layout a kernel row is contiguous in the image. In fp32, patches are multiplied in place, without im2col,
// and equal neighbouring patches only once. In bf16, the pixels of an output row are multiplied together, since their
// patches are a constant stride apart; short rows are copied together first (im2col). Backward, the gradient of the
// weights is the product of the upstream gradient and the patches, one kernel row at a time; the gradient of the
// input is computed kernel row by kernel row and accumulated.
//
// The filters and, except in the first layer in fp32, the values of a kernel row must be multiples of kBlock; the
// number of channels must be even.
#pragma once

#include <algorithm>

#include "dispatch.hpp"
#include "patch_groups.hpp"

namespace {

constexpr size_t kSegment = 256;  // pixels per product, so that their upstream gradients stay in cache
constexpr size_t kChunk = 8;      // images per partial sum of weight gradients, whatever the number of threads

template <class Unit>
struct Workspace {
    using value = typename Unit::value;
    Scratch<word> gradient_columns, patches;
    Scratch<value> images, gradient, im2col;
    Scratch<float> patch_gradients, sum;
    Scratch<const value*> pointers;
};

// Stores the interior of a padded fp32 image, without the padding.
template <class Format>
void store_interior(const Shape& shape, const float* sum, typename Format::value* to) {
    for (size_t row = 0; row < shape.height; ++row, to += shape.row()) {
        const float* from = sum + shape.interior() + row * shape.pitch();
        for (size_t at = 0; at < shape.row(); at += kLanes) {
            vec values{};
            const size_t count = std::min(shape.row() - at, kLanes);
            std::memcpy(&values, from + at, count * sizeof *from);
            Format::store_partial(to + at, count, values);
        }
    }
}

// Splits rows of `width` pixels into equal blocks of at most `max_pixels`; in a row the last two may overlap.
struct Blocks {
    Blocks(size_t height, size_t width, size_t max_pixels)
        : per_row((width + max_pixels - 1) / max_pixels), pixels((width + per_row - 1) / per_row),
          count(height * per_row), width(width) {}

    size_t first_pixel(size_t block) const {
        return block / per_row * width + std::min(block % per_row * pixels, width - pixels);
    }

    const size_t per_row, pixels, count, width;
};

template <class Unit>
Blocks blocks_of(const Shape& shape) {
    if (shape.has_short_rows()) return Blocks(1, shape.pixels(), Unit::kRows);
    return Blocks(shape.out_height(), shape.out_width(), Unit::kRows);
}

// The patches of a padded image, for units that multiply blocks of pixels: in place or, for short rows, im2col.
template <class Unit>
class Patches {
    using value = typename Unit::value;
    static constexpr size_t kPerWord = Unit::Format::kPerWord;

  public:
    Patches(const Shape& shape, const value* in) : shape_(shape), at_(shape.has_short_rows() ? im2col(in) : in) {}

    // The patches of consecutive pixels, starting at `pixel`.
    Rows from(size_t pixel) const {
        if (shape_.has_short_rows()) return rows(pixel * shape_.kernel(), shape_.kernel());
        return rows(shape_.patch(pixel), shape_.stride * shape_.channels);
    }
    // The extent of the sum over one patch.
    Reduction reduction() const {
        if (shape_.has_short_rows()) return {shape_.kernel() / kPerWord};
        return {shape_.kernel_row() / kPerWord, shape_.kernel_height, shape_.pitch() / kPerWord};
    }

  private:
    Rows rows(size_t begin, size_t pixel_stride) const {
        return {reinterpret_cast<const word*>(at_ + begin), pixel_stride / kPerWord, 1};
    }
    const value* im2col(const value* in) const {
        value* const first = per_thread<Workspace<Unit>>().im2col.get(shape_.pixels() * shape_.kernel());
        value* to = first;
        for (size_t pixel = 0; pixel < shape_.pixels(); ++pixel)
            for (size_t kernel_y = 0; kernel_y < shape_.kernel_height; ++kernel_y, to += shape_.kernel_row())
                std::copy_n(in + shape_.patch(pixel) + kernel_y * shape_.pitch(), shape_.kernel_row(), to);
        return first;
    }

    const Shape& shape_;
    const value* at_;
};

// Computes the gradients of one layer for some images.
template <class Unit>
class Backward {
    using Format = typename Unit::Format;
    using value = typename Unit::value;
    static constexpr size_t kPerWord = Format::kPerWord;

  public:
    // `x` has up to kChunk images, with padding if `have_zeros`.
    Backward(const Shape& shape, const value* x, size_t images, bool have_zeros = false)
        : shape_(shape), images_(images), rows_(images * shape.pixels()), padded_(round_up(rows_, kBlock)), x_(x),
          pads_(shape.pads() && !have_zeros) {}

    // Sets the upstream gradient and applies the backward pass of the ReLU; `output` is null if there is none.
    void set_upstream(const value* output, const value* upstream) {
        const size_t values = rows_ * shape_.filters;
        const size_t room = padded_ * shape_.filters;
        gradient_ = workspace_.gradient.get(room);
        relu_backward<Format>(output, upstream, values, gradient_);
        std::memset(gradient_ + values, 0, (room - values) * sizeof(value));
    }

    // Sums the upstream gradients of each group of equal patches into one row, for units that take rows. To be called
    // after `compute_input_gradient`, which needs those of single pixels. `groups_of` maps an image to its groups.
    template <class GroupsOf>
    void merge_equal_patches(const GroupsOf& groups_of) {
        rows_ = 0;
        for (size_t image = 0; image < images_; ++image) {
            const PatchGroups* groups = groups_[image] = &groups_of(image);
            groups->sum(gradient_ + image * shape_.out(), shape_.filters, gradient_ + rows_ * shape_.filters);
            rows_ += groups->count();
        }
    }

    // Computes the gradients of the weights and biases, or adds them if `accumulate`. That of the weights is
    // [filters, kernel] or, for units that take rows, its transpose [kernel, filters].
    void compute_weight_gradient(float* weight_gradient, float* bias_gradient, bool accumulate) {
        const size_t filters = shape_.filters, row = shape_.kernel_row(), words = padded_ / kPerWord;
        sum_rows<Format>(gradient_, rows_, filters, bias_gradient, accumulate);
        const value** pointers = patch_pointers();
        if constexpr (Unit::kTakesRows) {
            for (size_t begin = 0; begin < rows_; begin += kSegment)
                for (size_t kernel_y = 0; kernel_y < shape_.kernel_height; ++kernel_y)
                    for (size_t filter = 0; filter < filters; filter += kBlock)
                        Unit::products(IndirectColumns{pointers + begin, kernel_y * shape_.pitch()}, row,
                                       {std::min(kSegment, rows_ - begin), 1, 0, accumulate || begin > 0},
                                       InRows{gradient_ + begin * filters + filter, filters},
                                       weight_gradient + kernel_y * row * filters + filter, filters);
            return;
        }
        const typename Unit::Scope scope(kLanes);
        const Rows gradient = Unit::columns(gradient_, padded_, filters, workspace_.gradient_columns);
        word* patches = workspace_.patches.get(words * row);
        for (size_t kernel_y = 0; kernel_y < shape_.kernel_height; ++kernel_y) {
            for (size_t i = 0; i < words; ++i) {
                const value* a = pointers[i * kPerWord] + kernel_y * shape_.pitch();
                const value* b = pointers[i * kPerWord + kPerWord - 1] + kernel_y * shape_.pitch();
                for (size_t at = 0; at < row; at += kBlock)
                    Format::pack(a + at, b + at, patches + at * words + i * kLanes, words * kLanes);
            }
            for (size_t column = 0; column < row; column += kBlock)
                for (size_t filter = 0; filter < filters; filter += kBlock) {
                    const word* panel = patches + column * words;
                    float* to = weight_gradient + filter * shape_.kernel() + kernel_y * row + column;
                    Unit::products(gradient.from(filter), gradient.from(filter + kLanes), kLanes,
                                   {words, 1, 0, accumulate}, panel, panel + words * kLanes, to,
                                   to + kLanes * shape_.kernel(), shape_.kernel());
                }
        }
    }

    // Computes the gradient of the input; `panels` has the weights as packed by `pack_transposed`.
    void compute_input_gradient(const word* panels, value* to) {
        for (size_t image = 0; image < images_; ++image, to += shape_.image()) {
            const value* gradient = gradient_ + image * shape_.out();
            const bool by_rows = Unit::kTakesRows && !shape_.has_short_rows();
            const bool in_place = Unit::kTakesRows && !shape_.pads();
            float* sum = in_place ? reinterpret_cast<float*>(to) : workspace_.sum.get(shape_.padded());
            std::memset(sum, 0, shape_.padded() * sizeof(float));
            if constexpr (Unit::kTakesRows) {
                if (by_rows) add_rows(gradient, panels, sum);
            }
            if (!by_rows) add_blocks(gradient, panels, sum);
            if (!in_place) store_interior<Format>(shape_, sum, to);
        }
    }

  private:
    // Adds the gradients of patches to the padded image, for a row of output pixels and a block of a kernel row at a
    // time. Neighbouring pixels do not overlap in it: they are at least a whole block of channels apart. Flattened
    // because sums are short: calls of `products` would take a twelfth of the time.
    __attribute__((flatten)) void add_rows(const value* gradient, const word* panels, float* sum) {
        const size_t row = shape_.kernel_row(), words = shape_.filters, width = shape_.out_width();
        const size_t pixel_stride = shape_.stride * shape_.channels;
        for (size_t kernel_y = 0; kernel_y < shape_.kernel_height; ++kernel_y, sum += shape_.pitch())
            for (size_t column = 0; column < row; column += kBlock, panels += kBlock * words)
                for (size_t pixel = 0; pixel < shape_.pixels(); pixel += width)
                    Unit::products({gradient + pixel * words, words, 1}, width, {words, 1, 0, true}, panels,
                                   panels + words * kLanes, sum + shape_.patch(pixel) + column, pixel_stride);
    }

    // As `add_rows`, for units that multiply blocks of pixels and for short rows: via a buffer, two blocks at a time.
    void add_blocks(const value* from, const word* panels, float* sum) {
        const size_t row = shape_.kernel_row(), words = shape_.filters / kPerWord;
        const Blocks blocks(1, shape_.pixels(), Unit::kRows);
        const size_t block_size = blocks.pixels * row;
        const typename Unit::Scope scope(blocks.pixels);
        const Rows gradient{reinterpret_cast<const word*>(from), words, 1};
        float* patch_gradients = workspace_.patch_gradients.get(2 * block_size);
        for (size_t kernel_y = 0; kernel_y < shape_.kernel_height;
             ++kernel_y, sum += shape_.pitch(), panels += row * words)
            for (size_t block = 0, done = 0; block < blocks.count; block += 2) {
                const size_t count = std::min<size_t>(2, blocks.count - block);
                const size_t firsts[] = {blocks.first_pixel(block), blocks.first_pixel(block + count - 1)};
                for (size_t column = 0; column < row; column += kBlock) {
                    const word* panel = panels + column * words;
                    float* to = patch_gradients + column;
                    if (count == 2)
                        Unit::products(gradient.from(firsts[0]), gradient.from(firsts[1]), blocks.pixels, {words},
                                       panel, panel + words * kLanes, to, to + block_size, row);
                    else
                        Unit::products(gradient.from(firsts[0]), blocks.pixels, {words}, panel,
                                       panel + words * kLanes, to, row);
                }
                for (size_t i = 0; i < count; ++i)
                    for (const size_t end = firsts[i] + blocks.pixels; done < end; ++done) {
                        float* at = sum + shape_.patch(done);
                        const float* more = patch_gradients + i * block_size + (done - firsts[i]) * row;
                        for (size_t j = 0; j < row; j += kLanes) store(at + j, load(at + j) + load(more + j));
                    }
            }
    }

    // Returns the address of the patch of each row of the upstream gradient, padding rows included.
    const value** patch_pointers() {
        const value** pointers = workspace_.pointers.get(padded_);
        const value** to = pointers;
        value* padded = pads_ ? workspace_.images.get(shape_.padded() * images_) : nullptr;
        for (size_t image = 0; image < images_; ++image) {
            const value* in = x_ + image * (pads_ ? shape_.image() : shape_.padded());
            if (pads_) {
                value* padded_image = padded + image * shape_.padded();
                add_zeros(shape_, in, padded_image);
                in = padded_image;
            }
            if (const PatchGroups* groups = groups_[image])
                for (size_t group = 0; group < groups->count(); ++group) *to++ = in + groups->place(group);
            else
                for_each_patch(shape_, [&](size_t, size_t place) { *to++ = in + place; });
        }
        std::fill(pointers + rows_, pointers + padded_, pointers[0]);
        return pointers;
    }

    const Shape& shape_;
    const size_t images_;
    size_t rows_;  // rows of the gradient: one per pixel or, once merged, one per group
    const size_t padded_;
    const value* x_;
    const bool pads_;
    const PatchGroups* groups_[kChunk] = {};  // of each image, once merged
    Workspace<Unit>& workspace_ = per_thread<Workspace<Unit>>();
    value* gradient_ = nullptr;
};

// Stores sums [rows, kBlock] after adding the bias and applying the ReLU.
template <class Format>
void store_sums(const float* sums, size_t rows, const float* bias, typename Format::value* y, size_t pitch) {
    const Epilogue<Format> epilogue(bias, true);
    for (size_t row = 0; row < rows; ++row)
        epilogue.store(load(sums + row * kBlock), load(sums + row * kBlock + kLanes), y + row * pitch);
}

// Packs the weights of kLanes filters, from `filter` on, into a panel for the forward pass.
template <class Unit>
void pack_filters(const Shape& shape, const typename Unit::value* weight, size_t filter, word* panels) {
    const size_t words = shape.kernel() / Unit::Format::kPerWord;
    pack_rows(weight + filter * shape.kernel(), shape.kernel(), words, panels + filter * words);
}

// Convolves the first patch of each group in a padded image and applies the ReLU, for units that take rows. Computes
// part `part` of `parts`.
template <class Unit>
void convolve_groups(const Shape& shape, const PatchGroups& groups, const typename Unit::value* in,
                     const word* panels, const float* bias, typename Unit::value* y, size_t part, size_t parts) {
    using Format = typename Unit::Format;
    const size_t filters = shape.filters, pieces = (groups.count() + kRegisterRows - 1) / kRegisterRows;
    const size_t first = pieces * part / parts * kRegisterRows;
    const size_t end = std::min(pieces * (part + 1) / parts * kRegisterRows, groups.count());
    const Reduction reduction{shape.kernel_row(), shape.kernel_height, shape.pitch()};
    const word* pointers[Unit::kRows];
    alignas(64) float sums[Unit::kRows * kBlock];
    // The weights of a block of filters stay in the L1 cache.
    for (size_t filter = 0; filter < filters; filter += kBlock) {
        const word* panel = panels + filter * shape.kernel();
        const Epilogue<Format> epilogue(bias + filter, true);
        for (size_t begin = first; begin < end; begin += Unit::kRows) {
            const size_t count = std::min(Unit::kRows, end - begin);
            for (size_t i = 0; i < count; ++i) pointers[i] = in + groups.place(begin + i);
            Unit::products(IndirectRows{pointers, 0}, count, reduction,
                           InPanels{panel, panel + shape.kernel() * kLanes}, sums, kBlock);
            for (size_t i = 0; i < count; ++i)
                epilogue.store(load(sums + i * kBlock), load(sums + i * kBlock + kLanes),
                               y + groups.first_pixel(begin + i) * filters + filter);
        }
    }
}

// Convolves a padded image and applies the ReLU, for units that take blocks of pixels, within
// Unit::Scope(blocks_of<Unit>(shape).pixels). Computes part `part` of `parts`.
template <class Unit>
void convolve_image(const Shape& shape, const typename Unit::value* in, const word* panels, const float* bias,
                    typename Unit::value* y, size_t part, size_t parts) {
    using Format = typename Unit::Format;
    const size_t filters = shape.filters, words = shape.kernel() / Format::kPerWord;
    const Blocks blocks = blocks_of<Unit>(shape);
    const size_t begin = blocks.count * part / parts, end = blocks.count * (part + 1) / parts;
    if (begin == end) return;
    const Patches<Unit> patches(shape, in);
    const Reduction reduction = patches.reduction();
    alignas(64) float sums[2][Unit::kRows * kBlock];
    // The weights of a block of filters stay in the L1 cache.
    for (size_t filter = 0; filter < filters; filter += kBlock)
        for (size_t block = begin; block < end; block += 2) {
            const size_t count = std::min<size_t>(2, end - block);
            const size_t pixels[] = {blocks.first_pixel(block), blocks.first_pixel(block + count - 1)};
            const Rows rows[] = {patches.from(pixels[0]), patches.from(pixels[1])};
            const word* panel = panels + filter * words;
            if (count == 2)
                Unit::products(rows[0], rows[1], blocks.pixels, reduction, panel, panel + words * kLanes, sums[0],
                               sums[1], kBlock);
            else
                Unit::products(rows[0], blocks.pixels, reduction, panel, panel + words * kLanes, sums[0], kBlock);
            for (size_t i = 0; i < count; ++i)
                store_sums<Format>(sums[i], blocks.pixels, bias + filter, y + pixels[i] * filters + filter, filters);
        }
}

// Packs a layer's weights into panels for Backward::compute_input_gradient.
template <class Unit>
void pack_transposed(const Shape& shape, const typename Unit::value* weight, word* panels) {
    constexpr size_t kPerWord = Unit::Format::kPerWord;
    const size_t kernel = shape.kernel(), words = shape.filters / kPerWord;
    for (size_t i = 0; i < words; ++i)
        for (size_t at = 0; at < kernel; at += kBlock)
            Unit::Format::pack(weight + i * kPerWord * kernel + at,
                               weight + (i * kPerWord + kPerWord - 1) * kernel + at, panels + at * words + i * kLanes,
                               words * kLanes);
}

// Copies a layer's weight gradient from the layout of Backward::compute_weight_gradient to [filters, kernel].
template <class Unit>
void unpack_weight_gradient(const Shape& shape, const float* from, float* to) {
    const size_t filters = shape.filters, kernel = shape.kernel();
    if constexpr (!Unit::kTakesRows) {
        std::memcpy(to, from, filters * kernel * sizeof *to);
        return;
    }
    for_each_piece(filters / kLanes, [&](size_t piece) {
        const size_t filter = piece * kLanes;
        vec block[kLanes];
        size_t k = 0;
        for (; k + kLanes <= kernel; k += kLanes) {
            transpose_words(from + k * filters + filter, filters, block);
            for (size_t i = 0; i < kLanes; ++i) store(to + (filter + i) * kernel + k, block[i]);
        }
        for (; k < kernel; ++k)
            for (size_t i = 0; i < kLanes; ++i) to[(filter + i) * kernel + k] = from[k * filters + filter + i];
    });
}

// Sums gradients [chunks, size] over the chunks, in their order, into the first one.
inline void reduce_chunks(float* partial, size_t chunks, size_t size) {
    constexpr size_t kPiece = 4096;
    for_each_piece((size + kPiece - 1) / kPiece, [&](size_t piece) {
        const size_t begin = piece * kPiece, end = std::min(begin + kPiece, size);
        for (size_t chunk = 1; chunk < chunks; ++chunk)
            for (size_t i = begin; i < end; ++i) partial[i] += partial[chunk * size + i];
    });
}

}  // namespace
