// The threads that share the loops of all kernels (docs/decisions/0058).
//
// The calling thread computes pieces too, and waits only for pieces that other threads have taken. An OpenMP loop
// ends when every thread has arrived, even one whose core is busy with another program: that costs a time slice of
// the operating system, milliseconds, for pieces of microseconds. Here such a thread just does not help.
#include "threads.hpp"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <pthread.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace {

using std::size_t;
using std::uint32_t;
using std::uint64_t;

constexpr size_t kMaxHelpers = 255;
// Polls before a thread sleeps: about 0.2 ms, within which the next loop of an update usually begins.
constexpr int kSpins = 10'000;

#if defined(__x86_64__)
void relax() { _mm_pause(); }
uint64_t fp_control() { return _mm_getcsr(); }
void set_fp_control(uint64_t control) { _mm_setcsr(uint32_t(control)); }
#elif defined(__aarch64__)
void relax() { asm volatile("yield"); }
uint64_t fp_control() {
    uint64_t control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    return control;
}
void set_fp_control(uint64_t control) { asm volatile("msr fpcr, %0" ::"r"(control)); }
#else
void relax() {}
uint64_t fp_control() { return 0; }
void set_fp_control(uint64_t) {}
#endif

// Waits until `word` is no longer `old`: spins at first, then sleeps.
void wait(const std::atomic<uint32_t>& word, uint32_t old) {
    for (int spin = 0; spin < kSpins; ++spin) {
        if (word.load(std::memory_order_acquire) != old) return;
        relax();
    }
    word.wait(old, std::memory_order_acquire);
}

// The loop that is currently shared. A thread takes a piece by incrementing `next`, whose upper half is the loop's
// number, so that a late thread with the state of an earlier loop takes nothing.
struct Loop {
    static constexpr uint64_t kNone = 0xffff'ffff;  // as the number of a piece: none is left

    std::atomic<uint64_t> next{kNone};
    std::atomic<size_t> pieces{0}, helpers{0};
    std::atomic<Pool::Piece> run{nullptr};
    std::atomic<const void*> context{nullptr};
    std::atomic<uint64_t> fp_control{0};  // the caller's: whether denormals are flushed to 0
    alignas(128) std::atomic<size_t> done{0};

    void open(size_t count, size_t max_helpers, Pool::Piece piece, const void* loop_context) {
        const uint64_t number = (next.load(std::memory_order_relaxed) >> 32) + 1;
        next.store(number << 32 | kNone, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_release);  // closed before the following stores are visible
        pieces.store(count, std::memory_order_relaxed);
        helpers.store(max_helpers, std::memory_order_relaxed);
        run.store(piece, std::memory_order_relaxed);
        context.store(loop_context, std::memory_order_relaxed);
        fp_control.store(::fp_control(), std::memory_order_relaxed);
        done.store(0, std::memory_order_relaxed);
        next.store(number << 32, std::memory_order_release);
    }

    // Computes pieces until none is left; returns whether it completed the last outstanding piece.
    bool work(size_t helper) {
        bool was_last = false;
        uint64_t ticket = next.load(std::memory_order_acquire);
        for (;;) {
            const size_t count = pieces.load(std::memory_order_relaxed), number = ticket & kNone;
            const Pool::Piece piece = run.load(std::memory_order_relaxed);
            const void* loop_context = context.load(std::memory_order_relaxed);
            const uint64_t control = fp_control.load(std::memory_order_relaxed);
            if (number >= count || helper > helpers.load(std::memory_order_relaxed)) return was_last;
            std::atomic_thread_fence(std::memory_order_acquire);
            if (!next.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
            if (helper) set_fp_control(control);
            piece(loop_context, number);
            was_last = done.fetch_add(1, std::memory_order_acq_rel) + 1 == count;
            ticket = next.load(std::memory_order_acquire);
        }
    }
};

Loop loop;
std::atomic_flag is_shared = ATOMIC_FLAG_INIT;  // while a thread's loop is shared
alignas(128) std::atomic<uint32_t> begun{0};    // number of loops
alignas(128) std::atomic<uint32_t> ended{0};    // number of loops whose last piece a helper completed
size_t helpers = 0;
int (*thread_count)() = nullptr;

void* helper_main(void* number) {
    for (uint32_t seen = begun.load(std::memory_order_acquire) - 1;;) {
        wait(begun, seen);
        seen = begun.load(std::memory_order_acquire);
        if (loop.work(reinterpret_cast<size_t>(number))) {
            ended.fetch_add(1, std::memory_order_release);
            ended.notify_one();
        }
    }
}

// Runs in a child process after fork: it has none of its parent's threads, and drops a loop that one had begun.
void reset_after_fork() {
    helpers = 0;
    loop.next.store(loop.next.load(std::memory_order_relaxed) | Loop::kNone, std::memory_order_relaxed);
    is_shared.clear();
}

// Starts helpers until there are `count`, or as many as possible; fewer compute the same results. They block all
// signals, which are left to the program's own threads.
void start_helpers(size_t count) {
    [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, reset_after_fork);
    if (helpers >= count) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (pthread_t thread; helpers < count && helpers < kMaxHelpers; ++helpers) {
        if (pthread_create(&thread, nullptr, helper_main, reinterpret_cast<void*>(helpers + 1)) != 0) break;
        pthread_detach(thread);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

size_t num_threads() {
    const int count = thread_count();
    return count > 1 ? size_t(count) : 1;
}

void share_out(size_t pieces, Pool::Piece piece, const void* context) {
    const size_t others = num_threads() - 1;
    // The helpers may be working on another thread's loop.
    if (others == 0 || is_shared.test_and_set(std::memory_order_acquire)) {
        for (size_t number = 0; number < pieces; ++number) piece(context, number);
        return;
    }
    start_helpers(others);
    loop.open(pieces, others, piece, context);
    begun.fetch_add(1, std::memory_order_release);
    begun.notify_all();
    loop.work(0);
    for (uint32_t seen = ended.load(std::memory_order_acquire); loop.done.load(std::memory_order_acquire) != pieces;
         seen = ended.load(std::memory_order_acquire))
        wait(ended, seen);
    is_shared.clear(std::memory_order_release);
}

const Pool threads_of_this_process{num_threads, share_out};

}  // namespace

extern "C" unsigned kernel_sources() { return KERNEL_SOURCES; }

// Returns the pool; a loop has as many threads as `count` returns in the thread that calls the kernel.
extern "C" const Pool* pool_of(int (*count)()) {
    thread_count = count;
    return &threads_of_this_process;
}
