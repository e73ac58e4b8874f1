// Groups of equal patches of an image. The games' screens have large areas of one colour, and what is computed of a patch
// need not be computed again: the 400 patches that the first layer of the Nature network reads form about 70 groups on a
// screen of Pong, 160 on one of Seaquest and 370 on one of Ms. Pac-Man.
#pragma once

#include "shape.hpp"

namespace {

// Groups of the output's pixels whose patches are equal to the bit, numbered as their first pixels come. Patches are
// compared with those on their left and above them: equal ones that are farther apart may be in different groups.
class PatchGroups {
  public:
    // Makes a group of each pixel.
    void separate(const Shape& shape) {
        begin(shape);
        for_each_patch(shape, [&](size_t pixel, size_t place) { add(pixel, place); });
    }

    // Finds the groups in an image with its zeros, of `pixel_bytes` bytes each. Kernel rows of fewer than eight bytes
    // are not compared.
    void find(const Shape& shape, const void* image, size_t pixel_bytes) {
        const size_t row_bytes = shape.kernel_width * pixel_bytes;
        if (row_bytes < sizeof(Bits)) return separate(shape);
        begin(shape);
        const size_t width = shape.out_width(), pitch = shape.pitch() / shape.channels * pixel_bytes;
        const size_t right = shape.stride * pixel_bytes, down = shape.stride * pitch;
        const auto* of_row = static_cast<const std::uint8_t*>(image);
        size_t place_of_row = 0;
        for (size_t pixel = 0; pixel < pixels_; of_row += down, place_of_row += shape.stride * shape.pitch()) {
            const std::uint8_t* differences = differences_to_left(of_row, shape.kernel_height, pitch, right);
            for (size_t x = 0; x < width; ++x, ++pixel) {
                const std::uint8_t* patch = of_row + x * right;
                if (x > 0 && are_zero(differences + x * right, row_bytes))
                    labels_[pixel] = labels_[pixel - 1];
                else if (pixel >= width && are_equal(patch, patch - down, shape.kernel_height, pitch, row_bytes))
                    labels_[pixel] = labels_[pixel - width];
                else
                    add(pixel, place_of_row + x * shape.stride * shape.channels);
            }
        }
    }

    // Finds the groups of the layer behind, which reads what the pixels of `before` became: equal patches become equal
    // values, so that labels are compared instead of them.
    void find_after(const PatchGroups& before, const Shape& shape) {
        if (before.are_separate()) return separate(shape);
        Shape of_labels = shape;
        of_labels.channels = 1;
        find(shape, with_zeros(of_labels, before.labels_, padded_), sizeof *labels_);
    }

    size_t count() const { return count_; }
    // The first pixel of a group, and where its patch begins in an image with its zeros.
    size_t first_pixel(size_t group) const { return firsts_[group]; }
    size_t place(size_t group) const { return places_[group]; }

    // Copies rows of `size` values, one for each pixel, from the first pixels of groups to the others.
    template <class Value>
    void spread(Value* rows, size_t size) const {
        if (are_separate()) return;
        for (size_t pixel = 0; pixel < pixels_; ++pixel)
            if (const size_t first = firsts_[group_of(pixel)]; first != pixel)
                std::memcpy(rows + pixel * size, rows + first * size, size * sizeof *rows);
    }
    // Adds rows of `size` numbers, one for each pixel, up to one for each group. A group's number is at most its first
    // pixel's, so that sums may begin at `rows` or before it. Whole vectors: size.
    void sum(const float* rows, size_t size, float* sums) const {
        if (are_separate() && sums == rows) return;
        for (size_t pixel = 0; pixel < pixels_; ++pixel, rows += size) {
            float* to = sums + group_of(pixel) * size;
            if (firsts_[group_of(pixel)] == pixel)
                std::memmove(to, rows, size * sizeof *rows);
            else
                for (size_t i = 0; i < size; i += kSide) store(to + i, load(to + i) + load(rows + i));
        }
    }

  private:
    using Bits = std::uint64_t;

    void begin(const Shape& shape) {
        pixels_ = shape.pixels(), count_ = 0;
        labels_ = room_.of(3 * pixels_), firsts_ = labels_ + pixels_, places_ = firsts_ + pixels_;
    }
    void add(size_t pixel, size_t place) {
        firsts_[count_] = std::uint32_t(pixel), places_[count_] = std::uint32_t(place);
        labels_[pixel] = std::uint32_t(++count_);
    }
    size_t group_of(size_t pixel) const { return labels_[pixel] - 1; }
    bool are_separate() const { return count_ == pixels_; }

    // Byte by byte the bits in which any of some rows differs from what is `right` bytes before it.
    const std::uint8_t* differences_to_left(const std::uint8_t* rows, size_t count, size_t pitch, size_t right) {
        std::uint8_t* __restrict to = differences_.of(pitch);
        std::memset(to, 0, pitch);
        for (size_t row = 0; row < count; ++row, rows += pitch)
            for (size_t i = right; i < pitch; ++i) to[i] |= rows[i] ^ rows[i - right];
        return to;
    }
    // The bits of `count` bytes, united; `from` gives those of the eight bytes from a place on, of which the last may be
    // read twice.
    template <class From>
    static ALWAYS_INLINE Bits united(size_t count, const From& from) {
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
        return united(count, [&](size_t at) { return load_bits(bytes + at); }) == 0;
    }
    static bool are_equal(const std::uint8_t* a, const std::uint8_t* b, size_t rows, size_t pitch, size_t row_bytes) {
        for (size_t row = 0; row < rows; ++row, a += pitch, b += pitch)
            if (united(row_bytes, [&](size_t at) { return load_bits(a + at) ^ load_bits(b + at); }) != 0) return false;
        return true;
    }

    size_t pixels_ = 0, count_ = 0;
    std::uint32_t* labels_ = nullptr;  // of each pixel: its group's number plus 1, since zeros around an image are 0
    std::uint32_t *firsts_ = nullptr, *places_ = nullptr;
    Scratch<std::uint32_t> room_, padded_;
    Scratch<std::uint8_t> differences_;
};

}  // namespace
