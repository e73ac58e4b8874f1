// Patches of an image that repeat those next to them. The games' screens have large areas of one colour, and what is
// computed of a patch need not be computed again: of the 400 patches that the first layer of the Nature network reads,
// about 65 differ on a screen of Pong, 150 on one of Seaquest and 370 on one of Ms. Pac-Man.
#pragma once

#include "shape.hpp"

namespace {

// The patches of an image that differ, numbered in the order of the output's pixels that have them first.
class Repeats {
  public:
    // Takes all patches for different.
    void find_none(const Shape& shape) {
        begin(shape);
        shape.for_each_patch([&](size_t pixel, size_t place) { add(pixel, place); });
    }

    // Compares each patch with those on its left and above it, in an image of pixels of `size` bytes, with its zeros.
    void find(const Shape& shape, const void* image, size_t size) {
        const size_t width = shape.out_width(), row = shape.kernel_width * size;
        const size_t right = shape.stride * size, pitch = shape.pitch() / shape.channels * size;
        if (row < sizeof(Word)) return find_none(shape);
        begin(shape);
        const auto* rows = static_cast<const std::uint8_t*>(image);
        const std::uint8_t *of_row = nullptr, *differences = nullptr;
        size_t column = width;
        shape.for_each_patch([&](size_t pixel, size_t place) {
            if (column == width) {
                of_row = rows + place / shape.channels * size, column = 0;
                differences = differences_to_left(of_row, shape.kernel_height, pitch, right);
            }
            const size_t at = column++ * right;
            if (at > 0 && are_zero(differences + at, row))
                number_[pixel] = number_[pixel - 1];
            else if (pixel >= width &&
                     are_equal(of_row + at, of_row + at - shape.stride * pitch, shape.kernel_height, pitch, row))
                number_[pixel] = number_[pixel - width];
            else
                add(pixel, place);
        });
    }

    // The same of what a layer puts out: where patches repeat before it, what they become is equal.
    void find_after(const Repeats& before, const Shape& shape) {
        if (before.repeats_none()) return find_none(shape);
        Shape numbers = shape;
        numbers.channels = 1;
        find(shape, with_zeros(numbers, before.number_, padded_.of(numbers.padded())), sizeof *number_);
    }

    // How many patches differ.
    size_t count() const { return count_; }
    // Where one of them begins.
    size_t place(size_t number) const { return places_[number]; }
    // The first pixel of the output that has it.
    size_t pixel(size_t number) const { return pixels_[number]; }

    // Copies rows of values, one for each pixel of the output, of which the first of each patch are there, to the others.
    template <class Value>
    void spread(Value* rows, size_t size) const {
        if (repeats_none()) return;
        for (size_t pixel = 0; pixel < all_; ++pixel)
            if (const size_t first = first_pixel(pixel); first != pixel)
                std::memcpy(rows + pixel * size, rows + first * size, size * sizeof *rows);
    }
    // Adds rows, one for each pixel of the output, up to one for each patch that differs; `to` may be `rows`, or before it.
    void add_up(const float* rows, size_t size, float* to) const {
        if (repeats_none() && to == rows) return;
        for (size_t pixel = 0; pixel < all_; ++pixel, rows += size) {
            float* sum = to + (number_[pixel] - 1) * size;
            if (first_pixel(pixel) == pixel)
                std::memmove(sum, rows, size * sizeof *rows);
            else
                for (size_t i = 0; i < size; i += kSide) store(sum + i, load(sum + i) + load(rows + i));
        }
    }

  private:
    using Word = std::uint64_t;

    void begin(const Shape& shape) {
        all_ = shape.pixels(), count_ = 0;
        number_ = room_.of(3 * all_);
        places_ = number_ + all_, pixels_ = places_ + all_;
    }
    void add(size_t pixel, size_t place) {
        pixels_[count_] = std::uint32_t(pixel), places_[count_] = std::uint32_t(place);
        number_[pixel] = std::uint32_t(++count_);
    }
    bool repeats_none() const { return count_ == all_; }
    size_t first_pixel(size_t pixel) const { return pixels_[number_[pixel] - 1]; }

    // The bits in which some rows differ from what is `right` bytes to the left; in columns.
    const std::uint8_t* differences_to_left(const std::uint8_t* rows, size_t count, size_t pitch, size_t right) {
        std::uint8_t* __restrict to = differences_.of(pitch);
        std::memset(to, 0, pitch);
        for (size_t row = 0; row < count; ++row, rows += pitch)
            for (size_t i = right; i < pitch; ++i) to[i] |= rows[i] ^ rows[i - right];
        return to;
    }
    // All bits of `count` bytes, by words, of which the last may overlap the one before; `word` gives what begins at a byte.
    template <class Run>
    static ALWAYS_INLINE Word any(size_t count, const Run& word) {
        Word bits = 0;
        for (size_t at = 0; at + sizeof(Word) < count; at += sizeof(Word)) bits |= word(at);
        return bits | word(count - sizeof(Word));
    }
    static Word load_word(const std::uint8_t* bytes) {
        Word word;
        std::memcpy(&word, bytes, sizeof word);
        return word;
    }
    static bool are_zero(const std::uint8_t* bytes, size_t count) {
        return any(count, [&](size_t at) { return load_word(bytes + at); }) == 0;
    }
    static bool are_equal(const std::uint8_t* a, const std::uint8_t* b, size_t rows, size_t pitch, size_t row) {
        for (size_t i = 0; i < rows; ++i, a += pitch, b += pitch)
            if (any(row, [&](size_t at) { return load_word(a + at) ^ load_word(b + at); }) != 0) return false;
        return true;
    }

    size_t all_ = 0, count_ = 0;
    std::uint32_t* number_ = nullptr;  // of each pixel's patch, from 1 on: 0 is what zeros around an image have
    std::uint32_t *places_ = nullptr, *pixels_ = nullptr;
    Scratch<std::uint32_t> room_, padded_;
    Scratch<std::uint8_t> differences_;
};

}  // namespace
