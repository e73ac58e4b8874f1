// Gathers stacks of frames from a ring of single frames.
#include <cstdint>
#include <cstring>

#include "threads.hpp"

// Gathers for each index the stack of `stack` frames that ends there, with zeros before the first frame of its
// episode. Consecutive frames of an environment are `stride` indices apart in a ring of `size`. Returns false, and
// writes nothing, if an index is outside the ring.
extern "C" bool gather_stacks(const std::uint8_t* frames, const std::uint8_t* starts, std::int64_t size,
                              std::int64_t stride, std::int64_t stack, std::int64_t frame_bytes,
                              const std::int64_t* indices, std::int64_t count, std::uint8_t* to) {
    for (std::int64_t i = 0; i < count; ++i)
        if (indices[i] < 0 || indices[i] >= size) return false;
    for_each_piece(std::size_t(count), [&](std::size_t piece) {
        const auto i = std::int64_t(piece);
        std::int64_t index = indices[i];
        bool is_before_start = false;
        for (std::int64_t place = (i + 1) * stack - 1; place >= i * stack; --place) {
            if (is_before_start)
                std::memset(to + place * frame_bytes, 0, frame_bytes);
            else
                std::memcpy(to + place * frame_bytes, frames + index * frame_bytes, frame_bytes);
            is_before_start |= starts[index];
            index = index >= stride ? index - stride : index - stride + size;
        }
    });
    return true;
}
