// Groups of equal patches of an image. Game screens have large areas of one colour, and the result for a patch need
// not be computed again for an equal one: the 400 patches of the Nature network's first layer form about 70 groups on
// a screen of Pong, 160 on one of Seaquest and 370 on one of Ms. Pac-Man.
#pragma once

#include "shape.hpp"

namespace {

// Groups of output pixels with bitwise equal patches, numbered in the order of their first pixels. A patch is
// compared only with its left and upper neighbours: equal patches farther apart may be in different groups.
class PatchGroups {
  public:
    // Puts each pixel into a group of its own.
    void separate(const Shape& shape) {
        reset(shape);
        for_each_patch(shape, [&](size_t pixel, size_t place) { add_group(pixel, place); });
    }

    // Finds the groups in a padded image of `pixel_bytes` bytes per pixel. Kernel rows shorter than eight bytes are
    // not compared.
    void find(const Shape& shape, const void* image, size_t pixel_bytes) {
        const size_t row_bytes = shape.kernel_width * pixel_bytes;
        if (row_bytes < sizeof(Bits)) return separate(shape);
        reset(shape);
        const size_t width = shape.out_width(), pitch = shape.pitch() / shape.channels * pixel_bytes;
        const size_t right = shape.stride * pixel_bytes, down = shape.stride * pitch;
        const auto* row_start = static_cast<const std::uint8_t*>(image);
        size_t row_offset = 0;
        for (size_t pixel = 0; pixel < pixels_; row_start += down, row_offset += shape.stride * shape.pitch()) {
            const std::uint8_t* differences = differences_to_left(row_start, shape.kernel_height, pitch, right);
            for (size_t x = 0; x < width; ++x, ++pixel) {
                const std::uint8_t* patch = row_start + x * right;
                if (x > 0 && are_zero(differences + x * right, row_bytes))
                    labels_[pixel] = labels_[pixel - 1];
                else if (pixel >= width && are_equal(patch, patch - down, shape.kernel_height, pitch, row_bytes))
                    labels_[pixel] = labels_[pixel - width];
                else
                    add_group(pixel, row_offset + x * shape.stride * shape.channels);
            }
        }
    }

    // Finds the groups of the next layer, whose input has one value per pixel of `before`. Equal patches have equal
    // outputs, so labels are compared instead of values.
    void find_after(const PatchGroups& before, const Shape& shape) {
        if (before.are_separate()) return separate(shape);
        Shape label_shape = shape;
        label_shape.channels = 1;
        find(shape, with_zeros(label_shape, before.labels_, padded_), sizeof *labels_);
    }

    size_t count() const { return count_; }
    // A group's first pixel, and the offset of its patch in a padded image.
    size_t first_pixel(size_t group) const { return firsts_[group]; }
    size_t place(size_t group) const { return places_[group]; }

    // Copies the rows [pixels, size] of groups' first pixels to the other pixels of the group.
    template <class Value>
    void spread(Value* rows, size_t size) const {
        if (are_separate()) return;
        for (size_t pixel = 0; pixel < pixels_; ++pixel)
            if (const size_t first = firsts_[group_of(pixel)]; first != pixel)
                std::memcpy(rows + pixel * size, rows + first * size, size * sizeof *rows);
    }
    // Sums rows [pixels, size] into sums [groups, size]. A group's number is at most its first pixel, so `sums` may
    // be `rows` or begin before it. `size` must be a multiple of kLanes.
    void sum(const float* rows, size_t size, float* sums) const {
        if (are_separate() && sums == rows) return;
        for (size_t pixel = 0; pixel < pixels_; ++pixel, rows += size) {
            float* to = sums + group_of(pixel) * size;
            if (firsts_[group_of(pixel)] == pixel)
                std::memmove(to, rows, size * sizeof *rows);
            else
                for (size_t i = 0; i < size; i += kLanes) store(to + i, load(to + i) + load(rows + i));
        }
    }

  private:
    using Bits = std::uint64_t;

    void reset(const Shape& shape) {
        pixels_ = shape.pixels(), count_ = 0;
        labels_ = storage_.get(3 * pixels_), firsts_ = labels_ + pixels_, places_ = firsts_ + pixels_;
    }
    void add_group(size_t pixel, size_t place) {
        firsts_[count_] = std::uint32_t(pixel), places_[count_] = std::uint32_t(place);
        labels_[pixel] = std::uint32_t(++count_);
    }
    size_t group_of(size_t pixel) const { return labels_[pixel] - 1; }
    bool are_separate() const { return count_ == pixels_; }

    // Computes for each byte of `count` rows the bits in which any row differs from the byte `right` bytes before.
    const std::uint8_t* differences_to_left(const std::uint8_t* rows, size_t count, size_t pitch, size_t right) {
        std::uint8_t* __restrict to = differences_.get(pitch);
        std::memset(to, 0, pitch);
        for (size_t row = 0; row < count; ++row, rows += pitch)
            for (size_t i = right; i < pitch; ++i) to[i] |= rows[i] ^ rows[i - right];
        return to;
    }
    // Combines `count` bytes by OR; `from(at)` returns eight bytes at an offset. The last eight may overlap others.
    template <class From>
    static ALWAYS_INLINE Bits or_reduce(size_t count, const From& from) {
        Bits bits = 0;
        for (size_t at = 0; at + sizeof(Bits) < count; at += sizeof(Bits)) bits |= from(at);
        return bits | from(count - sizeof(Bits));
    }
    static Bits load_bits(const std::uint8_t* at) {
        Bits bits;
        std::memcpy(&bits, at, sizeof bits);
        return bits;
    }
    static bool are_zero(const std::uint8_t* bytes, size_t count) {
        return or_reduce(count, [&](size_t at) { return load_bits(bytes + at); }) == 0;
    }
    static bool are_equal(const std::uint8_t* a, const std::uint8_t* b, size_t rows, size_t pitch, size_t row_bytes) {
        for (size_t row = 0; row < rows; ++row, a += pitch, b += pitch)
            if (or_reduce(row_bytes, [&](size_t at) { return load_bits(a + at) ^ load_bits(b + at); }) != 0)
                return false;
        return true;
    }

    size_t pixels_ = 0, count_ = 0;
    std::uint32_t* labels_ = nullptr;  // group number + 1 of each pixel, since padding is 0
    std::uint32_t *firsts_ = nullptr, *places_ = nullptr;
    Scratch<std::uint32_t> storage_, padded_;
    Scratch<std::uint8_t> differences_;
};

}  // namespace
