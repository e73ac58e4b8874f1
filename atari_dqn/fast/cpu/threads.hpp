// Parallel loops. Which thread computes a piece is not determined, so each piece writes its own results, which are
// the same with any number of threads.
#pragma once

#include <cstddef>

// A thread pool: that of threads.cpp, once `use_pool` has been called with it.
struct Pool {
    using Piece = void (*)(const void* loop, std::size_t piece);

    std::size_t (*threads)();
    void (*share_out)(std::size_t pieces, Piece piece, const void* loop);
};

inline const Pool* pool = nullptr;

// Returns the number of threads of a loop, including the calling thread.
inline std::size_t threads() { return pool ? pool->threads() : 1; }

// Calls `run(piece)` for each piece below `pieces`, in any order and from several threads; returns when all are done.
template <class Run>
void for_each_piece(std::size_t pieces, const Run& run) {
    if (pool && pieces > 1) {
        pool->share_out(
            pieces, [](const void* loop, std::size_t piece) { (*static_cast<const Run*>(loop))(piece); }, &run);
    } else {
        for (std::size_t piece = 0; piece < pieces; ++piece) run(piece);
    }
}
