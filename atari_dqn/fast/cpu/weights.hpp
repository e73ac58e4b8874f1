// The weights of a fully connected layer: plain, read in place, or noisy, computed just before they are read.
#pragma once

#include "gradients.hpp"

namespace {

constexpr size_t kPieceWords = 64;  // words of a sum that a core processes at a time

template <class Unit>
struct Workspace {
    Scratch<typename Unit::value> rows, noisy;
    Scratch<word> panels, band;
    Scratch<float> bias, sums;
};

// Rows that begin `pitch` values apart.
template <class Value>
struct View {
    const Value* at;
    size_t pitch;
};

// The cache lines to be read next, prefetched in four quarters while `kPieceWords` words of a sum are accumulated.
template <size_t kPerWord>
struct PrefetchLines {
    static constexpr size_t kCount = 4 * kPieceWords * kPerWord;
    using Offsets = std::ptrdiff_t[kCount];
    static constexpr bool kAny = true;
    const char* from;
    const std::ptrdiff_t* offsets;

    PrefetchLines quarter(size_t part) const { return {from, offsets + part * kCount / 4}; }
    ALWAYS_INLINE void prefetch_for(size_t word) const {
        for (size_t i = word * kPerWord; i < (word + 1) * kPerWord; ++i) prefetch(from + offsets[i]);
    }
};

// For weights that a hardware prefetcher fetches in time.
struct NoPrefetch {
    using Offsets = char;
    static constexpr bool kAny = false;

    NoPrefetch quarter(size_t) const { return {}; }
    void prefetch_for(size_t) const {}
};

// Weights [n_size, k_size] of n_size outputs and k_size inputs, read in place.
template <class Unit>
struct PlainWeights {
    using value = typename Unit::value;
    using Lines = NoPrefetch;
    const value* weight;
    size_t k_size, n_size;

    // The elements of a sum over `all` that are available at a time: all of them.
    size_t piece(size_t all) const { return all; }
    // The weights of kBlock outputs from `n` on, for the inputs from `k` on.
    View<value> rows(size_t n, size_t k, size_t) const { return {weight + n * k_size + k, k_size}; }
    // The same for any number of outputs.
    View<value> columns(size_t n, size_t, size_t k, size_t) const { return rows(n, k, k_size); }
    void line_offsets(size_t, Lines::Offsets&) const {}
    Lines lines(size_t, size_t, const Lines::Offsets&) const { return {}; }
    void prefetch_gradient(size_t, size_t) const {}
    void store_deviation_gradient(const float*, size_t, size_t) const {}
};

// Noisy weights mean + deviation ⊙ noise_out noise_inᵀ. They are computed piece by piece in the L1 cache; while one
// piece is multiplied, the means and deviations of the next are prefetched.
template <class Unit>
struct NoisyWeights {
    using Format = typename Unit::Format;
    using value = typename Unit::value;
    using Lines = PrefetchLines<Format::kPerWord>;
    static constexpr size_t kPiece = kPieceWords * Format::kPerWord;
    const float *mean, *deviation, *noise_in, *noise_out;
    float* deviation_gradient;  // null if not needed
    size_t k_size, n_size;

    size_t piece(size_t) const { return kPiece; }
    View<value> rows(size_t n, size_t k, size_t end) const { return noisy_weights(n, n + kBlock, k, end, kPiece); }
    View<value> columns(size_t n, size_t last, size_t k, size_t end) const {
        return noisy_weights(n, last, k, end, kBand);
    }
    // Computes the offsets of the lines of `columns` columns of both matrices, relative to the first mean.
    void line_offsets(size_t columns, typename Lines::Offsets& offsets) const {
        const std::ptrdiff_t deviation_offset =
            reinterpret_cast<const char*>(deviation) - reinterpret_cast<const char*>(mean);
        for (size_t i = 0, lines = columns / kLanes; i < Lines::kCount; ++i)
            offsets[i] = (i / 2 / lines * k_size + i / 2 % lines * kLanes) * sizeof(float) + i % 2 * deviation_offset;
    }
    // Returns the lines of the next piece, which begins at output `n` and input `k`.
    Lines lines(size_t n, size_t k, const typename Lines::Offsets& offsets) const {
        return {reinterpret_cast<const char*>(mean + n * k_size + k), offsets};
    }
    // Prefetches a line of the deviations' gradient, which is about to be written.
    ALWAYS_INLINE void prefetch_gradient(size_t n, size_t k) const {
        prefetch_to_write(deviation_gradient + n * k_size + k);
    }
    // Stores the deviations' gradient [kBlock, kBlock], which is that of the means times the noise.
    void store_deviation_gradient(const float* mean_gradient, size_t n, size_t k) const {
        for (size_t i = 0; i < kBlock; ++i)
            for (size_t j = 0; j < kBlock; j += kLanes)
                store(deviation_gradient + (n + i) * k_size + k + j,
                      load(mean_gradient + i * k_size + j) * noise(n + i, k + j));
    }

  private:
    vec noise(size_t n, size_t k) const { return load(noise_in + k) * splat(noise_out[n]); }
    View<value> noisy_weights(size_t n, size_t last, size_t begin, size_t end, size_t pitch) const {
        value* const first = per_thread<Workspace<Unit>>().noisy.get(kPiece * kBand);
        for (value* to = first; n < last; ++n, to += pitch)
            for (size_t k = begin; k < end; k += kBlock) {
                const float *a = mean + n * k_size + k, *b = deviation + n * k_size + k;
                Format::store(to + k - begin, multiply_add(load(b), noise(n, k), load(a)),
                              multiply_add(load(b + kLanes), noise(n, k + kLanes), load(a + kLanes)));
            }
        return {first, pitch};
    }
};

// Computes the noisy biases mean + deviation ⊙ noise_out.
inline void noisy_bias(const float* mean, const float* deviation, const float* noise_out, size_t n_size, float* to) {
    for (size_t n = 0; n < n_size; ++n) to[n] = mean[n] + deviation[n] * noise_out[n];
}

}  // namespace
