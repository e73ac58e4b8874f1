// The weights of a fully connected layer: as they lie, or under noise, made when they are about to be read.
#pragma once

#include "units.hpp"

namespace {

constexpr size_t kBand = 128;  // columns of the weights that a core takes at a time
constexpr size_t kAhead = 8;   // rows: a piece of each is less than a processor foresees

template <class Unit>
struct Memory {
    Scratch<typename Unit::value> rows, noisy;
    Scratch<word> columns, panels, band;
    Scratch<float> bias;
};

// Rows of values that lie `pitch` apart.
template <class Value>
struct View {
    const Value* at;
    size_t pitch;
};

// The weights of `n_size` outputs for `k_size` inputs, where they lie.
template <class Unit>
struct Plain {
    using value = typename Unit::value;
    const value* weight;
    size_t k_size, n_size;

    View<value> rows(size_t n) const { return {weight + n * k_size, k_size}; }            // of 32 outputs
    View<value> columns(size_t begin, size_t) const { return {weight + begin, k_size}; }  // of some inputs
    void ask_for_gradient(size_t, size_t) const {}
    void deviation_gradient(const float*, size_t, size_t) const {}
};

// The same, each weight its mean plus its deviation times the noise of its input and of its output.
template <class Unit>
struct Noisy {
    using Format = typename Unit::Format;
    using value = typename Unit::value;
    const float *mean, *deviation, *noise_in, *noise_out;
    float* of_deviation;  // its gradient, or null
    size_t k_size, n_size;

    View<value> rows(size_t n) const {
        value* to = kept<Memory<Unit>>().noisy.of(kBlock * k_size);
        make(n, kBlock, 0, k_size, to, k_size);
        return {to, k_size};
    }
    View<value> columns(size_t begin, size_t end) const {
        value* to = kept<Memory<Unit>>().noisy.of(n_size * kBand);
        make(0, n_size, begin, end, to, kBand);
        return {to, kBand};
    }
    // Has the place of a deviation's gradient be fetched, which is about to be written.
    void ask_for_gradient(size_t n, size_t k) const { __builtin_prefetch(of_deviation + n * k_size + k, 1); }
    // The deviations' gradient in 32 × 32 places, given the means': what a weight has of both is its noise apart.
    void deviation_gradient(const float* of_mean, size_t n, size_t k) const {
        for (size_t i = 0; i < kBlock; ++i)
            for (size_t j = 0; j < kBlock; j += kSide)
                _mm512_storeu_ps(of_deviation + (n + i) * k_size + k + j,
                                 _mm512_mul_ps(_mm512_loadu_ps(of_mean + i * k_size + j), noise(n + i, k + j)));
    }

  private:
    __m512 noise(size_t n, size_t k) const {
        return _mm512_mul_ps(_mm512_loadu_ps(noise_in + k), _mm512_set1_ps(noise_out[n]));
    }
    void make(size_t n, size_t outputs, size_t begin, size_t end, value* to, size_t pitch) const {
        for (size_t last = n + outputs; n < last; ++n, to += pitch)
            for (size_t k = begin; k < end; k += kBlock) {
                const float *a = mean + n * k_size + k, *b = deviation + n * k_size + k;
                for (size_t line = kAhead * k_size; line < kAhead * k_size + kBlock; line += kSide)
                    __builtin_prefetch(a + line), __builtin_prefetch(b + line);
                Format::store(to + k - begin, _mm512_fmadd_ps(_mm512_loadu_ps(b), noise(n, k), _mm512_loadu_ps(a)),
                              _mm512_fmadd_ps(_mm512_loadu_ps(b + kSide), noise(n, k + kSide), _mm512_loadu_ps(a + kSide)));
            }
    }
};

// The biases under the noise of their outputs.
inline void noisy_bias(const float* mean, const float* deviation, const float* noise_out, size_t n_size, float* to) {
    for (size_t n = 0; n < n_size; ++n) to[n] = mean[n] + deviation[n] * noise_out[n];
}

}  // namespace
