// Stacks of frames, put together from a ring of single ones.
#include <cstdint>
#include <cstring>

#include "threads.hpp"

// For each cell its frame behind the ones before it, `stack` in all, and zeros before its episode's first. The frames of
// a lane lie `lanes` cells apart in a ring of `size` cells. False, and nothing of use, if a cell is none of the ring's.
extern "C" bool gather_stacks(const std::uint8_t* frames, const std::uint8_t* starts, std::int64_t size,
                              std::int64_t lanes, std::int64_t stack, std::int64_t frame_bytes,
                              const std::int64_t* cells, std::int64_t count, std::uint8_t* to) {
    for (std::int64_t i = 0; i < count; ++i)
        if (cells[i] < 0 || cells[i] >= size) return false;
    for_each_piece(std::size_t(count), [&](std::size_t piece) {
        const auto i = std::int64_t(piece);
        std::int64_t cell = cells[i];
        bool is_before_start = false;
        for (std::int64_t place = (i + 1) * stack - 1; place >= i * stack; --place) {
            if (is_before_start)
                std::memset(to + place * frame_bytes, 0, frame_bytes);
            else
                std::memcpy(to + place * frame_bytes, frames + cell * frame_bytes, frame_bytes);
            is_before_start |= starts[cell];
            cell = cell >= lanes ? cell - lanes : cell - lanes + size;
        }
    });
    return true;
}
