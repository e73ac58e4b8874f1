// What is called from Python and from other files here.
#pragma once

#include <cstdint>

extern "C" {

// What a stack of `layers` convolutions, whose shapes are numbers as in Shape's constructor, makes of images: of fp32 or
// of bytes, which lie channel by channel (in planes) or channels last. `outputs`, of all layers but the last, may be null.
void encode(int unit, const void* pixels, int are_fp32, int in_planes, const std::int64_t* shapes, std::int64_t layers,
            const void* const* weights, const float* const* biases, void* const* outputs, void* encoded);

// y = x wᵀ + bias, behind a ReLU or none: x is `batch` × `inputs`, w `outputs` × `inputs`.
void multiply(int unit, const void* x, const void* weight, const float* bias, std::int64_t batch, std::int64_t inputs,
              std::int64_t outputs, int relu, void* y);

// The same under noise, `noise_in` for each input, `noise_out` for each output: means and deviations of weights, then of
// biases.
void multiply_noisy(int unit, const void* x, const float* mean, const float* deviation, const float* noise_in,
                    const float* noise_out, const float* bias, const float* bias_deviation, std::int64_t batch,
                    std::int64_t inputs, std::int64_t outputs, int relu, void* y);

// The gradients of `encode`, given what it returned and kept. Sums over the minibatch are made in the same order by any
// number of threads.
void encode_backward(int unit, const void* pixels, int are_fp32, int in_planes, const std::int64_t* shapes,
                     std::int64_t layers, const void* const* weights, const void* const* outputs, const void* encoded,
                     const void* upstream, float* const* of_weights, float* const* of_biases);

// The gradients of `multiply` without a ReLU; `of_weight` and `of_x` may be null.
void multiply_backward(int unit, const void* x, const void* weight, const void* upstream, std::int64_t batch,
                       std::int64_t inputs, std::int64_t outputs, float* of_weight, float* of_bias, void* of_x);

// Those of `multiply_noisy`, of means and deviations; these of weights may be null, together.
void multiply_noisy_backward(int unit, const void* x, const float* mean, const float* deviation,
                             const float* noise_in, const float* noise_out, const void* upstream, std::int64_t batch,
                             std::int64_t inputs, std::int64_t outputs, float* of_mean, float* of_deviation,
                             float* of_bias, float* of_bias_deviation, void* of_x);
}
