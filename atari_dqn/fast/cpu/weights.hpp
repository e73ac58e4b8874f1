// The weights of a fully connected layer: as they lie, or under noise, made when they are about to be read.
#pragma once

#include "gradients.hpp"

namespace {

constexpr size_t kWords = 64;  // of a sum that a core takes at a time

template <class Unit>
struct Memory {
    Scratch<typename Unit::value> rows, noisy;
    Scratch<word> panels, band;
    Scratch<float> bias, sums;
};

// Rows of values that lie `pitch` apart.
template <class Value>
struct View {
    const Value* at;
    size_t pitch;
};

// What is to be read next, asked for line by line while `kWords` of a sum are added up, in four quarters.
template <size_t kPerWord>
struct Lines {
    static constexpr size_t kCount = 4 * kWords * kPerWord;
    using Offsets = std::ptrdiff_t[kCount];
    static constexpr bool kAny = true;
    const char* from;
    const std::ptrdiff_t* offsets;

    Lines quarter(size_t part) const { return {from, offsets + part * kCount / 4}; }
    ALWAYS_INLINE void prefetch_for(size_t word) const {
        for (size_t i = word * kPerWord; i < (word + 1) * kPerWord; ++i) prefetch(from + offsets[i]);
    }
};

// The same where a processor foresees by itself what is read next.
struct NoLines {
    using Offsets = char;
    static constexpr bool kAny = false;

    NoLines quarter(size_t) const { return {}; }
    void prefetch_for(size_t) const {}
};

// The weights of `n_size` outputs for `k_size` inputs, where they lie.
template <class Unit>
struct Plain {
    using value = typename Unit::value;
    using Next = NoLines;
    const value* weight;
    size_t k_size, n_size;

    // How many of a sum's numbers there are weights for at a time; all of them.
    size_t piece(size_t all) const { return all; }
    // The weights of kBlock outputs from `n` on, for the inputs from `k` on.
    View<value> rows(size_t n, size_t k, size_t) const { return {weight + n * k_size + k, k_size}; }
    // Of any number of outputs.
    View<value> columns(size_t n, size_t, size_t k, size_t) const { return rows(n, k, k_size); }
    void find_lines(size_t, Next::Offsets&) const {}
    Next lines(size_t, size_t, const Next::Offsets&) const { return {}; }
    void prefetch_gradient(size_t, size_t) const {}
    void deviation_gradient(const float*, size_t, size_t) const {}
};

// The same, each weight its mean plus its deviation times the noise of its input and of its output. They are made piece
// by piece in the nearest cache, and while one is multiplied, what the next is made of is on its way.
template <class Unit>
struct Noisy {
    using Format = typename Unit::Format;
    using value = typename Unit::value;
    using Next = Lines<Format::kPerWord>;
    static constexpr size_t kPiece = kWords * Format::kPerWord;
    const float *mean, *deviation, *noise_in, *noise_out;
    float* of_deviation;  // its gradient, or null
    size_t k_size, n_size;

    size_t piece(size_t) const { return kPiece; }
    View<value> rows(size_t n, size_t k, size_t end) const { return made(n, n + kBlock, k, end, kPiece); }
    View<value> columns(size_t n, size_t last, size_t k, size_t end) const { return made(n, last, k, end, kBand); }
    // Where the lines of so many columns of both matrices lie, from the means' first on.
    void find_lines(size_t columns, typename Next::Offsets& offsets) const {
        const std::ptrdiff_t apart = reinterpret_cast<const char*>(deviation) - reinterpret_cast<const char*>(mean);
        for (size_t i = 0, lines = columns / kSide; i < Next::kCount; ++i)
            offsets[i] = (i / 2 / lines * k_size + i / 2 % lines * kSide) * sizeof(float) + i % 2 * apart;
    }
    // What is read of the next piece, from output `n` and input `k` on.
    Next lines(size_t n, size_t k, const typename Next::Offsets& offsets) const {
        return {reinterpret_cast<const char*>(mean + n * k_size + k), offsets};
    }
    // Has the place of a deviation's gradient be fetched, which is about to be written.
    ALWAYS_INLINE void prefetch_gradient(size_t n, size_t k) const { prefetch_to_write(of_deviation + n * k_size + k); }
    // The deviations' gradient in kBlock × kBlock places, given the means': what a weight has of both is its noise apart.
    void deviation_gradient(const float* of_mean, size_t n, size_t k) const {
        for (size_t i = 0; i < kBlock; ++i)
            for (size_t j = 0; j < kBlock; j += kSide)
                store(of_deviation + (n + i) * k_size + k + j,
                                 load(of_mean + i * k_size + j) * noise(n + i, k + j));
    }

  private:
    vec noise(size_t n, size_t k) const {
        return load(noise_in + k) * splat(noise_out[n]);
    }
    View<value> made(size_t n, size_t last, size_t begin, size_t end, size_t pitch) const {
        value* const first = kept<Memory<Unit>>().noisy.of(kPiece * kBand);
        for (value* to = first; n < last; ++n, to += pitch)
            for (size_t k = begin; k < end; k += kBlock) {
                const float *a = mean + n * k_size + k, *b = deviation + n * k_size + k;
                Format::store(to + k - begin, multiply_add(load(b), noise(n, k), load(a)),
                              multiply_add(load(b + kSide), noise(n, k + kSide), load(a + kSide)));
            }
        return {first, pitch};
    }
};

// The biases under the noise of their outputs.
inline void noisy_bias(const float* mean, const float* deviation, const float* noise_out, size_t n_size, float* to) {
    for (size_t n = 0; n < n_size; ++n) to[n] = mean[n] + deviation[n] * noise_out[n];
}

}  // namespace
