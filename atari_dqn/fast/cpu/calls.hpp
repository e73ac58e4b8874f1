// The kernels that Python and other files of this directory call.
#pragma once

#include <cstdint>

extern "C" {

// Computes the output of a stack of `layers` convolutions, each with a ReLU. `shapes` has the numbers of each layer
// in the order of Shape's constructor; `pixels` are fp32 or bytes, in planes (NCHW) or channels-last (NHWC).
// `encoded` receives the output of the last layer, in planes; `outputs`, unless null, those of the others.
void encode(int unit, const void* pixels, int are_fp32, int in_planes, const std::int64_t* shapes,
            std::int64_t layers, const void* const* weights, const float* const* biases, void* const* outputs,
            void* encoded);

// Computes y = x weightᵀ + bias with an optional ReLU.
// x is [batch, inputs], weight [outputs, inputs], y [batch, outputs].
void multiply(int unit, const void* x, const void* weight, const float* bias, std::int64_t batch, std::int64_t inputs,
              std::int64_t outputs, int relu, void* y);

// As `multiply`, with noise: weight = mean + deviation ⊙ noise_out noise_inᵀ, and bias + bias_deviation ⊙ noise_out.
void multiply_noisy(int unit, const void* x, const float* mean, const float* deviation, const float* noise_in,
                    const float* noise_out, const float* bias, const float* bias_deviation, std::int64_t batch,
                    std::int64_t inputs, std::int64_t outputs, int relu, void* y);

// Computes the gradients of `encode` from its outputs. The summation order over the minibatch does not depend on the
// number of threads.
void encode_backward(int unit, const void* pixels, int are_fp32, int in_planes, const std::int64_t* shapes,
                     std::int64_t layers, const void* const* weights, const void* const* outputs, const void* encoded,
                     const void* upstream, float* const* weight_gradients, float* const* bias_gradients);

// Computes the gradients of `multiply` without a ReLU; `weight_gradient` and `x_gradient` may be null.
void multiply_backward(int unit, const void* x, const void* weight, const void* upstream, std::int64_t batch,
                       std::int64_t inputs, std::int64_t outputs, float* weight_gradient, float* bias_gradient,
                       void* x_gradient);

// Computes the gradients of `multiply_noisy` without a ReLU; `x_gradient` may be null, as may `mean_gradient` and
// `deviation_gradient` together.
void multiply_noisy_backward(int unit, const void* x, const float* mean, const float* deviation,
                             const float* noise_in, const float* noise_out, const void* upstream, std::int64_t batch,
                             std::int64_t inputs, std::int64_t outputs, float* mean_gradient,
                             float* deviation_gradient, float* bias_gradient, float* bias_deviation_gradient,
                             void* x_gradient);
}
