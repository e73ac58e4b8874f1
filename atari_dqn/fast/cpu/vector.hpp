// A vector of fp32 elements, as wide as the instruction set that a file is compiled for, by the vector extensions of
// GCC and Clang: 16 elements with AVX-512, 8 with AVX2, 4 with NEON.
//
// Three operations depend on the instruction set: `multiply_add`, `square_root` and, in bf16.hpp, products of bf16.
// With VECTOR_NUMBERS none does, and any processor computes vectors of any width, slowly, so that all can be tested.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

using bf16 = std::uint16_t;
using std::size_t;

#if defined(VECTOR_NUMBERS)
constexpr size_t kLanes = VECTOR_NUMBERS;
constexpr size_t kRegisterRows = 12;
#elif defined(__AVX512F__)
constexpr size_t kLanes = 16;         // elements of a vector: columns of a panel
constexpr size_t kRegisterRows = 12;  // rows of a register block, whose sums take two vectors each
#elif defined(__AVX2__) && defined(__FMA__)
constexpr size_t kLanes = 8;
constexpr size_t kRegisterRows = 6;
#else
constexpr size_t kLanes = 4;
constexpr size_t kRegisterRows = 12;
#endif
constexpr size_t kBlock = 2 * kLanes;  // columns of a register block; layers' sizes are multiples of it

constexpr size_t kLine = 16;  // fp32 values per cache line

typedef float vec __attribute__((vector_size(4 * kLanes)));

#define ALWAYS_INLINE inline __attribute__((always_inline))

// Prefetch a cache line to be read or written. Always inlined: a compiler considers a function that only prefetches
// free of side effects and removes calls of it.
ALWAYS_INLINE void prefetch(const void* at) { __builtin_prefetch(at); }
ALWAYS_INLINE void prefetch_to_write(const void* at) { __builtin_prefetch(at, 1); }

ALWAYS_INLINE vec load(const float* from) {
    vec x;
    std::memcpy(&x, from, sizeof x);
    return x;
}
ALWAYS_INLINE void store(float* to, vec x) { std::memcpy(to, &x, sizeof x); }

template <size_t... i>
ALWAYS_INLINE vec splat(float x, std::index_sequence<i...>) {
    return vec{((void)i, x)...};
}
// Broadcasts a number.
ALWAYS_INLINE vec splat(float x) { return splat(x, std::make_index_sequence<kLanes>()); }

// Computes a · b + sum with one rounding, with VECTOR_NUMBERS with two.
ALWAYS_INLINE vec multiply_add(vec a, vec b, vec sum) {
#if defined(VECTOR_NUMBERS)
    return a * b + sum;
#elif defined(__AVX512F__)
    return _mm512_fmadd_ps(a, b, sum);
#elif defined(__AVX2__) && defined(__FMA__)
    return _mm256_fmadd_ps(a, b, sum);
#elif defined(__aarch64__)
    return vfmaq_f32(sum, a, b);
#else
#error "no fused multiply-add: compile for AVX2 with FMA, AVX-512 or NEON"
#endif
}

ALWAYS_INLINE vec square_root(vec x) {
#if defined(VECTOR_NUMBERS)
    for (size_t i = 0; i < kLanes; ++i) x[i] = std::sqrt(x[i]);
    return x;
#elif defined(__AVX512F__)
    return _mm512_sqrt_ps(x);
#elif defined(__AVX2__)
    return _mm256_sqrt_ps(x);
#elif defined(__aarch64__)
    return vsqrtq_f32(x);
#endif
}

// Computes max(x, 0); NaN stays NaN.
ALWAYS_INLINE vec rectified(vec x) { return vec{} > x ? vec{} : x; }

// Sums the elements of a vector by halving it repeatedly.
inline float sum(vec x) {
    alignas(64) float numbers[kLanes];
    store(numbers, x);
    for (size_t half = kLanes / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; ++i) numbers[i] += numbers[i + half];
    return numbers[0];
}

// Permutes the elements of two vectors; the indices `i` count through both.
template <class Vector, size_t... i>
ALWAYS_INLINE Vector shuffled(Vector a, Vector b, std::index_sequence<i...>) {
#if defined(__clang__) || __GNUC__ >= 12
    return __builtin_shufflevector(a, b, i...);
#else
    typedef std::conditional_t<sizeof(a[0]) == 1, std::int8_t, std::int32_t> Index;
    typedef Index Indices __attribute__((vector_size(sizeof(Vector))));
    return __builtin_shuffle(a, b, Indices{Index(i)...});
#endif
}

// Exchanges the off-diagonal blocks of `kStep` × `kStep` elements in each block of 2 `kStep` × 2 `kStep`: a step of a
// transposition.
template <size_t kStep, size_t... i>
ALWAYS_INLINE void exchange_blocks(vec& a, vec& b, std::index_sequence<i...>) {
    const vec low = shuffled(a, b, std::index_sequence<(i & kStep ? kLanes + i - kStep : i)...>());
    b = shuffled(a, b, std::index_sequence<(i & kStep ? kLanes + i : i + kStep)...>());
    a = low;
}

template <size_t kStep = kLanes / 2>
ALWAYS_INLINE void transpose(vec (&rows)[kLanes]) {
    if constexpr (kStep > 0) {
#pragma GCC unroll 16
        for (size_t i = 0; i < kLanes; ++i)
            if (!(i & kStep)) exchange_blocks<kStep>(rows[i], rows[i + kStep], std::make_index_sequence<kLanes>());
        transpose<kStep / 2>(rows);
    }
}

// A buffer that persists between calls, aligned for whole vectors; each thread has its own.
template <class T>
class Scratch {
  public:
    Scratch() = default;
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    T* get(size_t count) {
        if (count > count_) {
            std::free(at_);
            at_ = static_cast<T*>(std::aligned_alloc(64, (count * sizeof(T) + kSlack + 63) / 64 * 64));
            count_ = at_ ? count : 0;
            if (!at_) throw std::bad_alloc();
        }
        return at_;
    }
    ~Scratch() { std::free(at_); }

  private:
    static constexpr size_t kSlack = 2 * 64;  // a block of columns may begin at the last element
    T* at_ = nullptr;
    size_t count_ = 0;
};

// Returns the calling thread's object of type T, which persists between calls.
template <class T>
T& per_thread() {
    static thread_local T instance;
    return instance;
}

inline size_t round_up(size_t n, size_t to) { return (n + to - 1) / to * to; }
