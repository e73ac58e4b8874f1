// Loops whose pieces are shared among threads. Which thread computes a piece is not determined, so that a piece writes
// results of its own, and results are the same with any number of threads.
#pragma once

#include <cstddef>

// What computes the pieces of loops: threads.cpp's threads, once `use_pool` was called with them.
struct Pool {
    using Piece = void (*)(const void* loop, std::size_t piece);

    std::size_t (*threads)();
    void (*share_out)(std::size_t pieces, Piece piece, const void* loop);
};

inline const Pool* pool = nullptr;

// How many threads share a loop, the calling one included.
inline std::size_t threads() { return pool ? pool->threads() : 1; }

// Calls `run` with each number below `pieces`, in no order, and returns when all calls have.
template <class Run>
void for_each_piece(std::size_t pieces, const Run& run) {
    if (pool && pieces > 1) {
        pool->share_out(pieces, [](const void* loop, std::size_t piece) { (*static_cast<const Run*>(loop))(piece); }, &run);
    } else {
        for (std::size_t piece = 0; piece < pieces; ++piece) run(piece);
    }
}
