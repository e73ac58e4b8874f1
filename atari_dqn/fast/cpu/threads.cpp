// The threads that share the loops of all kernels.
//
// The calling thread computes pieces too, and waits only for pieces that other threads have taken. A loop of OpenMP ends
// when every thread has come by, even one whose core another program uses: it then takes a time slice of the system,
// milliseconds, where its pieces take microseconds. Here that thread's help is missed, and nothing else.
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

constexpr size_t kMostHelpers = 255;
constexpr int kLooks = 10'000;  // before a thread sleeps: about 0.2 ms, within which an update's next loop usually begins

#if defined(__x86_64__)
void relax() { _mm_pause(); }
uint64_t rounding() { return _mm_getcsr(); }
void round_as(uint64_t control) { _mm_setcsr(uint32_t(control)); }
#elif defined(__aarch64__)
void relax() { asm volatile("yield"); }
uint64_t rounding() {
    uint64_t control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    return control;
}
void round_as(uint64_t control) { asm volatile("msr fpcr, %0" ::"r"(control)); }
#else
void relax() {}
uint64_t rounding() { return 0; }
void round_as(uint64_t) {}
#endif

// Waits until `word` is no longer `old`: awake at first, then asleep.
void wait(const std::atomic<uint32_t>& word, uint32_t old) {
    for (int look = 0; look < kLooks; ++look) {
        if (word.load(std::memory_order_acquire) != old) return;
        relax();
    }
    word.wait(old, std::memory_order_acquire);
}

// The loop that is being shared. A thread takes a piece by raising `next`, whose upper half is the loop's number: one
// that comes late, with what it read of an earlier loop, takes nothing.
struct Loop {
    static constexpr uint64_t kNone = 0xffff'ffff;  // as a piece's number: there is none to take

    std::atomic<uint64_t> next{kNone};
    std::atomic<size_t> pieces{0}, helpers{0};
    std::atomic<Pool::Piece> run{nullptr};
    std::atomic<const void*> context{nullptr};
    std::atomic<uint64_t> rounding{0};  // the caller's: whether denormal numbers are flushed to 0
    alignas(128) std::atomic<size_t> done{0};

    void open(size_t count, size_t most_helpers, Pool::Piece piece, const void* of) {
        const uint64_t number = (next.load(std::memory_order_relaxed) >> 32) + 1;
        next.store(number << 32 | kNone, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_release);  // closed before what follows is seen
        pieces.store(count, std::memory_order_relaxed);
        helpers.store(most_helpers, std::memory_order_relaxed);
        run.store(piece, std::memory_order_relaxed);
        context.store(of, std::memory_order_relaxed);
        rounding.store(::rounding(), std::memory_order_relaxed);
        done.store(0, std::memory_order_relaxed);
        next.store(number << 32, std::memory_order_release);
    }

    // Takes and computes pieces until there are none; returns whether the last one of all to be done was among them.
    bool work(size_t helper) {
        bool was_last = false;
        uint64_t taken = next.load(std::memory_order_acquire);
        for (;;) {
            const size_t count = pieces.load(std::memory_order_relaxed), number = taken & kNone;
            const Pool::Piece piece = run.load(std::memory_order_relaxed);
            const void* of = context.load(std::memory_order_relaxed);
            const uint64_t control = rounding.load(std::memory_order_relaxed);
            if (number >= count || helper > helpers.load(std::memory_order_relaxed)) return was_last;
            std::atomic_thread_fence(std::memory_order_acquire);
            if (!next.compare_exchange_weak(taken, taken + 1, std::memory_order_acq_rel)) continue;
            if (helper) round_as(control);
            piece(of, number);
            was_last = done.fetch_add(1, std::memory_order_acq_rel) + 1 == count;
            taken = next.load(std::memory_order_acquire);
        }
    }
};

Loop loop;
std::atomic_flag shares = ATOMIC_FLAG_INIT;     // while a thread's loop is shared
alignas(128) std::atomic<uint32_t> begun{0};  // loops so far
alignas(128) std::atomic<uint32_t> ended{0};  // of them, those whose last piece was a helper's
size_t helpers = 0;
int (*wanted)() = nullptr;

void* help(void* number) {
    for (uint32_t seen = begun.load(std::memory_order_acquire) - 1;;) {
        wait(begun, seen);
        seen = begun.load(std::memory_order_acquire);
        if (loop.work(reinterpret_cast<size_t>(number))) {
            ended.fetch_add(1, std::memory_order_release);
            ended.notify_one();
        }
    }
}

// A child process has none of its parent's threads, and computes nothing of a loop that one of them had begun.
void forget_helpers() {
    helpers = 0;
    loop.next.store(loop.next.load(std::memory_order_relaxed) | Loop::kNone, std::memory_order_relaxed);
    shares.clear();
}

// Starts what is lacking of `count` helpers, which leave signals to the program's own threads; fewer do the same.
void start_helpers(size_t count) {
    [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, forget_helpers);
    if (helpers >= count) return;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (pthread_t thread; helpers < count && helpers < kMostHelpers; ++helpers) {
        if (pthread_create(&thread, nullptr, help, reinterpret_cast<void*>(helpers + 1)) != 0) break;
        pthread_detach(thread);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

size_t num_threads() {
    const int count = wanted();
    return count > 1 ? size_t(count) : 1;
}

void share_out(size_t pieces, Pool::Piece piece, const void* context) {
    const size_t others = num_threads() - 1;
    if (others == 0 || shares.test_and_set(std::memory_order_acquire)) {  // or the helpers have another thread's loop
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
    shares.clear(std::memory_order_release);
}

const Pool threads_of_this_process{num_threads, share_out};

}  // namespace

extern "C" unsigned kernel_sources() { return KERNEL_SOURCES; }

// The pool; a loop has as many threads as `count` returns in the thread that calls the kernel.
extern "C" const Pool* pool_of(int (*count)()) {
    wanted = count;
    return &threads_of_this_process;
}
