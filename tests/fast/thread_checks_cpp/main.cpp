// Shares loops among threads: every piece must be computed once, before the loop ends, whatever else happens.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "../../../atari_dqn/fast/cpu/threads.hpp"

extern "C" const Pool* pool_of(int (*count)());

static std::atomic<int> count{4};

static bool each_piece_once(std::size_t pieces) {
    std::vector<int> times(pieces);  // not atomic: a piece belongs to one thread, and the loop's end makes it visible
    for_each_piece(pieces, [&](std::size_t piece) { ++times[piece]; });
    for (const int each : times)
        if (each != 1) return false;
    return true;
}

static bool many_loops() {
    for (std::size_t loop = 0; loop < 20'000; ++loop)
        if (!each_piece_once(loop % 37)) return false;
    return true;
}

static bool with_other_numbers_of_threads() {
    for (const int threads : {1, 2, 7, 3, 1, 4}) {
        count = threads;
        for (std::size_t loop = 0; loop < 500; ++loop)
            if (!each_piece_once(64)) return false;
    }
    return true;
}

static bool from_several_threads_at_once() {
    std::atomic<bool> right{true};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 3; ++caller)
        callers.emplace_back([&] {
            if (!many_loops()) right = false;
        });
    for (std::thread& caller : callers) caller.join();
    return right;
}

static bool inside_a_piece() {
    std::atomic<bool> right{true};
    for_each_piece(8, [&](std::size_t) {
        if (!each_piece_once(16)) right = false;
    });
    return right;
}

static bool in_a_child_process() {
    const pid_t child = fork();
    if (child == 0) _exit(many_loops() ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    return status == 0 && many_loops();
}

int main(int arguments, char**) {
    pool = pool_of([] { return count.load(); });
    const bool may_fork = arguments == 1;  // a sanitizer's threads do not survive it
    const bool right = many_loops() && with_other_numbers_of_threads() && from_several_threads_at_once() &&
                       inside_a_piece() && (!may_fork || in_a_child_process());
    std::puts(right ? "right" : "wrong");
    return !right;
}
