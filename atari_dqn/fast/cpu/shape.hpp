// The shape of a convolution.
#pragma once

#include <cstring>

#include "vector.hpp"

namespace {

struct Shape {
    static constexpr size_t kNumbers = 12;
    static constexpr size_t kShortRow = 5;  // pixels
    size_t batch, height, width, channels, kernel_height, kernel_width, stride;
    size_t zeros_above, zeros_below, zeros_left, zeros_right, filters;

    explicit Shape(const std::int64_t* n)
        : batch(n[0]), height(n[1]), width(n[2]), channels(n[3]), kernel_height(n[4]), kernel_width(n[5]),
          stride(n[6]), zeros_above(n[7]), zeros_below(n[8]), zeros_left(n[9]), zeros_right(n[10]), filters(n[11]) {}

    size_t out_height() const { return (height + zeros_above + zeros_below - kernel_height) / stride + 1; }
    size_t out_width() const { return (width + zeros_left + zeros_right - kernel_width) / stride + 1; }
    size_t pixels() const { return out_height() * out_width(); }
    size_t row() const { return width * channels; }  // values per row
    size_t image() const { return height * row(); }
    size_t pitch() const { return (width + zeros_left + zeros_right) * channels; }  // values per padded row
    size_t padded() const { return (height + zeros_above + zeros_below) * pitch(); }
    size_t out() const { return pixels() * filters; }                                  // output values per image
    size_t interior() const { return zeros_above * pitch() + zeros_left * channels; }  // offset of the unpadded image
    size_t kernel_row() const { return kernel_width * channels; }
    size_t kernel() const { return kernel_height * kernel_row(); }
    bool pads() const { return zeros_above || zeros_below || zeros_left || zeros_right; }
    // Whether output rows are too short for a product each and patches do not overlap, so that all patches of an
    // image may be copied together and multiplied at once.
    bool has_short_rows() const {
        return out_width() < kShortRow && stride >= kernel_height && stride >= kernel_width;
    }
    // The offset of an output pixel's patch in a padded image.
    size_t patch(size_t pixel) const {
        return pixel / out_width() * stride * pitch() + pixel % out_width() * stride * channels;
    }
};

// Calls `run(pixel, offset)` for each output pixel with the offset of its patch in a padded image.
template <class Run>
void for_each_patch(const Shape& shape, const Run& run) {
    const size_t height = shape.out_height(), width = shape.out_width();
    const size_t down = shape.stride * shape.pitch(), right = shape.stride * shape.channels;
    for (size_t y = 0, pixel = 0; y < height; ++y)
        for (size_t x = 0; x < width; ++x, ++pixel) run(pixel, y * down + x * right);
}

// Copies an image and adds the zero padding.
template <class Value>
void add_zeros(const Shape& shape, const Value* from, Value* to) {
    std::memset(to, 0, shape.padded() * sizeof(Value));
    for (size_t row = 0; row < shape.height; ++row)
        std::memcpy(to + shape.interior() + row * shape.pitch(), from + row * shape.row(),
                    shape.row() * sizeof(Value));
}

// Returns the padded image: `from` itself if there is no padding, else a copy in `scratch`.
template <class Value>
const Value* with_zeros(const Shape& shape, const Value* from, Scratch<Value>& scratch) {
    if (!shape.pads()) return from;
    Value* to = scratch.get(shape.padded());
    add_zeros(shape, from, to);
    return to;
}

}  // namespace
